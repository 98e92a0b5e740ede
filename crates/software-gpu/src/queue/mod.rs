//! Hardware queues: what one is made from, and the handle to it.

mod packet;

use std::fmt;

use crate::Error;

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

/// One hardware queue. Dropping it stops its consumer and waits for the thread; packets not begun stay in the ring.
#[derive(Debug)]
pub struct Queue {
    id: QueueId,
}

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
        let _ = index;
    }

    /// Stops the queue from taking further packets, as `hsa_queue_inactivate` does.
    pub fn inactivate(&self) {}

    pub(crate) fn create(id: QueueId, _config: QueueConfig) -> Result<Self, Error> {
        Ok(Self { id })
    }
}
