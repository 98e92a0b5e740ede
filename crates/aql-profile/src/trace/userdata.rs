//! What software writes into a trace through the USERDATA registers.
//!
//! Source: ROCm/rocm-systems `projects/aqlprofile/src/pm4/trace_decoder_instrument.h`.

use wavescope_pm4::{CopyControl, CopyDestination, CopySource, Generation, RegisterName};

use super::config::Settings;
use super::layout::Record;
use crate::commands::{Emitter, Symbol};

/// Bytes 0, 'R', 'O', 'C': the trace comes from ROCm.
const ROCM: u32 = 0x434F_5200;
/// The format's version.
const FORMAT_VERSION: u32 = 524_801;
/// Opcode of a code-object marker.
pub(super) const CODE_OBJECT: u32 = 4;
/// Opcode of a clock marker.
const RT_TIMESTAMP: u32 = 5;
/// Opcode of a statement about the agent; bits 11:8 say which.
const AGENT_INFO: u32 = 6;
const CLOCK_KHZ: u32 = 0;
const COUNTER_INTERVAL: u32 = 1;

const CLOCK_TO_MEMORY: CopyControl = CopyControl::new(CopySource::GPU_CLOCK, CopyDestination::MEMORY)
    .with_policies(1, 1)
    .with_64_bits()
    .with_confirm();
const MEMORY_TO_REGISTER: CopyControl =
    CopyControl::new(CopySource::MEMORY, CopyDestination::REGISTER).with_policies(1, 1);
const CLOCK_TO_REGISTER: CopyControl =
    CopyControl::new(CopySource::GPU_CLOCK, CopyDestination::REGISTER).with_policies(1, 1).with_confirm();

/// What a trace's beginning says of itself: where it comes from, the clock, the counters' interval.
pub(super) fn headers(emit: &mut Emitter<'_>, settings: &Settings) {
    let mut put = |value| emit.set(RegisterName::SqThreadTraceUserdata2, value);
    put(ROCM);
    put(FORMAT_VERSION);
    if settings.rt_timestamp {
        let clock = emit.chip.clock_khz;
        emit.set(RegisterName::SqThreadTraceUserdata2, agent_info(CLOCK_KHZ, clock.into()));
    }
    if emit.chip.generation == Generation::Gfx9 && !settings.counters.is_empty() {
        let units = u64::from(1 + emit.chip.cu / emit.chip.se);
        let counters = settings.counters.len().next_multiple_of(4) as u64;
        let interval = units * counters * settings.counter_period;
        emit.set(RegisterName::SqThreadTraceUserdata2, agent_info(COUNTER_INTERVAL, interval));
    }
}

fn agent_info(kind: u32, number: u64) -> u32 {
    AGENT_INFO | kind << 8 | ((number & 0xF_FFFF) as u32) << 12
}

/// gfx9: puts the GPU clock into the trace, once by way of an XCC's record (`field` of it), then as it is.
pub(super) fn clock_marker(emit: &mut Emitter<'_>, record: Symbol, field: u64) {
    let userdata = emit.register(RegisterName::SqThreadTraceUserdata3);
    let clock = record.plus(field);
    debug_assert!(field == Record::CLOCK_AT_START || field == Record::CLOCK_AT_STOP);
    emit.select_all();
    emit.set_uconfig(userdata, RT_TIMESTAMP);
    emit.copy_to(CLOCK_TO_MEMORY, 0, clock);
    emit.copy_from(MEMORY_TO_REGISTER, clock, userdata);
    emit.copy_from(MEMORY_TO_REGISTER, clock.plus(4), userdata);
    emit.copy(CLOCK_TO_REGISTER, 0, userdata.into());
}
