//! The GPU of the models: one slot, and a thread that writes it.
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

use std::sync::Arc;

use wavescope_att_resources::{BufferId, Completion, Device, DeviceError, Message, TraceId};
use wavescope_core::sync::Mutex;
use wavescope_core::sync::thread::{self, JoinHandle};
use wavescope_core::{AqlPacket, ContextId};

use super::{QUEUE, World, trace};

/// The fake GPU: its slot, and what has happened to it.
#[derive(Default)]
pub(crate) struct Gpu {
    pub(super) holds: Option<TraceId>,
    is_freed: bool,
    pub(crate) copied: usize,
}

pub(crate) type SharedGpu = Arc<Mutex<Gpu>>;

/// What the owner has of it.
pub(crate) struct FakeDevice(pub(crate) SharedGpu);

impl Device for FakeDevice {
    fn create_queue(&mut self, _packets: usize) -> Result<(), DeviceError> {
        Ok(())
    }
    fn destroy_queue(&mut self) {}
    fn allocate(&mut self, _buffer: BufferId, _bytes: u64) -> Result<u64, DeviceError> {
        Ok(0x1000)
    }
    fn free(&mut self, _buffer: BufferId, _address: u64) {
        self.0.lock().is_freed = true;
    }
    fn leak(&mut self, _buffer: BufferId, _address: u64) {}
    fn submit(&mut self, _packets: &[AqlPacket], _done: Completion) -> Result<(), DeviceError> {
        Err(DeviceError::Unwatched)
    }
}

/// Runs the dispatches of context 1 one after the other, each when the one before was released.
pub(crate) fn run_gpu(world: &mut World, dispatches: u32) -> JoinHandle<()> {
    let (gpu, address, mut grants) = world.parts(|world| world.grants.take());
    thread::spawn(move || {
        for number in 0..dispatches {
            if number > 0 && grants.recv().is_err() {
                return;
            }
            let mut slot = gpu.lock();
            assert!(!slot.is_freed, "the GPU wrote a slot that was freed");
            slot.holds = Some(trace(1, number));
            drop(slot);
            let _ = address.notify(Message::StopRetired { trace: trace(1, number), outcome: Ok(()) });
        }
        let _ = address.send(Message::Drained { context: ContextId(1), queue: QUEUE });
    })
}
