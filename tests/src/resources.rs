//! An agent's trace resources, with a meter on what their owner asks of the runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wavescope_att_resources::{
    AgentOwner, BufferId, Completion, Device, DeviceError, HsaDevice, HsaSlots, Limits,
};
use wavescope_core::{AgentId, AqlPacket};
use wavescope_hsa_intercept::Interceptor;

/// The owner of a GPU's trace resources and who reads its slots.
pub struct Resources {
    /// The owner.
    pub owner: Arc<AgentOwner>,
    /// The slots.
    pub slots: Arc<HsaSlots>,
    made: Arc<Made>,
}

#[derive(Debug, Default)]
struct Made {
    queues: AtomicUsize,
    outputs: AtomicUsize,
}

impl Resources {
    pub(crate) fn new(interceptor: &Interceptor, agent: AgentId, limits: Limits) -> Self {
        let device = HsaDevice::new(interceptor.hsa().clone(), agent);
        let (slots, made) = (device.slots(), Arc::new(Made::default()));
        let metered = Metered { device, made: Arc::clone(&made) };
        Self { owner: AgentOwner::new(agent, Box::new(metered), limits), slots, made }
    }

    /// Queues and output buffers that were made for all contexts so far.
    pub fn made(&self) -> (usize, usize) {
        (self.made.queues.load(Ordering::Relaxed), self.made.outputs.load(Ordering::Relaxed))
    }
}

/// The device with a meter in front.
struct Metered {
    device: HsaDevice,
    made: Arc<Made>,
}

impl Device for Metered {
    fn create_queue(&mut self, packets: usize) -> Result<(), DeviceError> {
        self.made.queues.fetch_add(1, Ordering::Relaxed);
        self.device.create_queue(packets)
    }

    fn destroy_queue(&mut self) {
        self.device.destroy_queue();
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<u64, DeviceError> {
        let is_output = matches!(buffer, BufferId::Output(_));
        self.made.outputs.fetch_add(usize::from(is_output), Ordering::Relaxed);
        self.device.allocate(buffer, bytes)
    }

    fn free(&mut self, buffer: BufferId, address: u64) {
        self.device.free(buffer, address);
    }

    fn leak(&mut self, buffer: BufferId, address: u64) {
        self.device.leak(buffer, address);
    }

    fn submit(&mut self, packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError> {
        self.device.submit(packets, done)
    }
}
