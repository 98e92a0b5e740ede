//! Stop: freezes the counters; it does not clear them.

use wavescope_pm4::{Attributes, Generation, RegisterName};

use super::expand::Expanded;
use super::registers::DIE_CONTROLLED;
use super::start::set_perfmon;
use crate::commands::Emitter;

/// Emits the stop commands.
pub(super) fn stop(emit: &mut Emitter<'_>, set: &Expanded) {
    emit.select_all();
    for counter in set.counters.iter().filter(|counter| counter.is(Attributes::AID)) {
        let control = counter.registers().and_then(|registers| registers.control);
        let control = control.map(|control| counter.on_die(emit.chip, control));
        emit.on_xcc(0, |emit| {
            if let Some(control) = control
                && counter.is(DIE_CONTROLLED)
            {
                emit.copy_write(control, 0);
            }
        });
    }
    set_perfmon(emit, set.attributes(), emit.dialect.perfmon_stop);
    if emit.chip.generation == Generation::Gfx9 {
        emit.set(RegisterName::RlcPerfmonClkCntl, 0);
    }
    emit.idle();
}
