//! Hardware queues: what one is made from, and the handle to it.

mod arrivals;
mod control;
mod inflight;
mod packet;
mod pause;
mod processor;

pub(crate) use control::Control;
pub(crate) use packet::KernelDispatch;

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use processor::Processor;

use crate::machine::Machine;
use crate::{Access, Error};

/// Number of a queue on its device, from 1, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub u32);

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hardware queue {}", self.0)
    }
}

/// How a queue learns of new packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doorbell {
    /// By [`Queue::ring`] only: the consumer sleeps until then.
    Rung,
    /// A 64-bit word in memory, polled with a growing pause, besides [`Queue::ring`]. Preset it to all ones.
    Memory(u64),
}

/// A queue's memory, as the runtime laid it out (`amd_queue_v2_t` for AQL queues).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Address of the ring of 64-byte packets.
    pub ring: u64,
    /// Packets in the ring, a power of two.
    pub packets: u32,
    /// Address of the write index (`write_dispatch_id`), in packets.
    pub write_index: u64,
    /// Address of the read index (`read_dispatch_id`), in packets.
    pub read_index: u64,
    /// How it is woken.
    pub doorbell: Doorbell,
}

/// One hardware queue. Dropping it stops its consumer and waits for the thread; packets not begun stay in the ring,
/// and what is in flight never completes.
#[derive(Debug)]
pub struct Queue {
    id: QueueId,
    control: Arc<Control>,
    consumer: Option<JoinHandle<()>>,
    /// Gives the place among the device's queues back.
    _seat: Seat,
}

/// A place among the queues of a device, and how the device reaches its holder.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) controls: Arc<std::sync::Mutex<Vec<Arc<Control>>>>,
    pub(crate) control: Arc<Control>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        crate::sync::lock(&self.controls).retain(|control| !Arc::ptr_eq(control, &self.control));
    }
}

/// A consumer's stack: its deepest work is compiling a command buffer.
const STACK_BYTES: usize = 512 << 10;

impl Queue {
    /// Queues that one agent has; creating more is refused.
    pub const LIMIT: usize = 128;

    /// Its number.
    pub const fn id(&self) -> QueueId {
        self.id
    }

    /// Writes the doorbell: packets up to and including `index` may be read. A value lower than an earlier one
    /// changes nothing.
    pub fn ring(&self, index: u64) {
        self.control.ring(index);
    }

    /// Stops the queue from taking further packets, as `hsa_queue_inactivate` does.
    pub fn inactivate(&self) {
        self.control.inactivate();
    }

    pub(crate) fn create(
        id: QueueId,
        config: QueueConfig,
        machine: Arc<Machine>,
        seat: Seat,
    ) -> Result<Self, Error> {
        let read = check(&config, &machine)?;
        let control = Arc::clone(&seat.control);
        let processor = Processor::new(id, config, Arc::clone(&control), machine, read);
        let builder = std::thread::Builder::new().name(format!("gpu-queue-{}", id.0)).stack_size(STACK_BYTES);
        let consumer =
            builder.spawn(move || processor.work()).map_err(|source| Error::Thread { queue: id, source })?;
        Ok(Self { id, control, consumer: Some(consumer), _seat: seat })
    }
}

/// Checks what the consumer will rely on, and returns the read index to begin with.
fn check(config: &QueueConfig, machine: &Machine) -> Result<u64, Error> {
    let &QueueConfig { ring: base, packets, .. } = config;
    if !packets.is_power_of_two() || !base.is_multiple_of(64) {
        return Err(Error::Ring { base, packets });
    }
    let memory = machine.memory();
    let doorbell = match config.doorbell {
        Doorbell::Rung => None,
        Doorbell::Memory(address) => Some((address, 8, Access::Read)),
    };
    let ranges = [
        Some((base, u64::from(packets) * 64, Access::Write)),
        Some((config.read_index, 8, Access::Write)),
        Some((config.write_index, 8, Access::Read)),
        doorbell,
    ];
    for (address, bytes, access) in ranges.into_iter().flatten() {
        if !memory.is_valid(address, bytes, access) {
            return Err(Error::Memory { address, bytes });
        }
    }
    memory.load_u64(config.read_index).map_err(|fault| Error::Memory { address: fault.address, bytes: 8 })
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.control.stop();
        let Some(consumer) = self.consumer.take() else { return };
        // A host may drop the queue from a callback on the consumer's own thread, which then ends by itself.
        if consumer.thread().id() != std::thread::current().id() {
            // The consumer has no result, and a panic of it was reported when it happened.
            let _ = consumer.join();
        }
    }
}
