//! The packets that interception emits for a batch in its steady state, as an application could write them itself.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use hsa_sys::HsaApiTable;
use wavescope_aql_profile::{AllocationRequest, Memory, Status};
use wavescope_core::{AgentId, AqlPacket, PacketType, Topology};
use wavescope_hsa::{Hsa, HsaSignal};
use wavescope_hsa_intercept::ProgramMemory;

use crate::Outcome;
use crate::application::OF_THE_BATCH;
use crate::case::Who;
use crate::rig::{BATCH, Case, Rig};

/// Batches before the one that is taken.
const WARM_UP: usize = 8;
/// Nothing counts a signal down this often.
const PLENTY: i64 = i64::MAX / 2;

/// The list for a batch of `kernel`, with signals and packet programs of the runtime behind `table`. What it names stays
/// for good.
///
/// # Safety
/// The table of a runtime that lives to the end.
pub(crate) unsafe fn list(
    table: *const HsaApiTable,
    topology: &Topology,
    who: Who,
    kernel: &AqlPacket,
) -> Outcome<Vec<AqlPacket>> {
    // SAFETY: by this function's contract.
    let hsa = unsafe { Hsa::from_table(table, Some(topology)) }?;
    let memory = Arc::new(Kept(ProgramMemory::new(hsa.clone(), AgentId(0))));
    // The list names it.
    std::mem::forget(Arc::clone(&memory));
    let case = match who {
        Who::Nobody => Case::NoSubscriber,
        Who::Declined => Case::Declined { serialized: true },
        Who::Counted => Case::Counted,
    };
    let mut rig = Rig::new(case, memory);
    let application = rig.batch[0].completion_signal();
    for packet in &mut rig.batch[..BATCH - 1] {
        packet.set_completion_signal(0);
    }
    for _ in 0..WARM_UP {
        rig.submit();
        rig.retire();
    }
    let mut emitted = Vec::new();
    rig.submit_to(|packets| emitted.extend_from_slice(packets));
    rig.retire();
    let interrupts =
        std::mem::take(&mut *rig.signals.interrupts.lock().unwrap_or_else(PoisonError::into_inner));
    let mut signals = Signals { hsa, interrupts, known: HashMap::from([(application, OF_THE_BATCH)]) };
    emitted.iter().map(|packet| signals.real(packet, kernel)).collect()
}

/// Memory that outlives its programs.
struct Kept(ProgramMemory);

impl Memory for Kept {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        self.0.allocate(request)
    }

    fn free(&self, _address: u64) {}

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.0.copy_in(address, bytes);
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.0.copy_out(address, into);
    }
}

/// Real signals for those of the scripted device.
struct Signals {
    hsa: Hsa,
    /// Scripted signals that wake the host.
    interrupts: Vec<u64>,
    known: HashMap<u64, u64>,
}

impl Signals {
    fn real(&mut self, emitted: &AqlPacket, kernel: &AqlPacket) -> Outcome<AqlPacket> {
        let kind = emitted.header().kind();
        let mut packet = if kind == PacketType::KERNEL_DISPATCH { *kernel } else { *emitted };
        packet.set_header(emitted.header());
        if matches!(kind, PacketType::BARRIER_AND) {
            // Gates are open when the queue comes to them.
            packet.0[2..12].fill(0);
        }
        let completion = match emitted.completion_signal() {
            0 => 0,
            signal => match self.known.get(&signal) {
                Some(&known) => known,
                None => self.make(signal)?,
            },
        };
        packet.set_completion_signal(completion);
        Ok(packet)
    }

    fn make(&mut self, scripted: u64) -> Outcome<u64> {
        let made = if self.interrupts.contains(&scripted) {
            HsaSignal::new(&self.hsa, PLENTY)?
        } else {
            HsaSignal::gpu_only(&self.hsa, PLENTY)?
        };
        let handle = made.into_handle().handle;
        self.known.insert(scripted, handle);
        Ok(handle)
    }
}
