//! The real [`Device`]: queue, memory and completions through the saved entries of an HSA runtime.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use wavescope_core::actor::{Actor, ActorThread, spawn};
use wavescope_core::sync::atomic::{AtomicBool, Ordering};
use wavescope_core::sync::{Mutex, Places};
use wavescope_core::{AgentId, AqlPacket};
use wavescope_hsa::{Hsa, HsaQueue, HsaSignal, Memory, MemoryKind};

use crate::{BufferId, Completion, Device, DeviceError, QUEUE_PACKETS, SlotReader};

/// How long a submission waits for room in the queue. The owner sends one at a time, so there always is.
const ROOM: Duration = Duration::from_secs(1);

/// The waiter looks this often whether the queue it waits for was destroyed.
const GLANCE: Duration = Duration::from_millis(100);

/// Queue, buffers and completions of one agent.
#[derive(Debug)]
pub struct HsaDevice {
    hsa: Hsa,
    agent: AgentId,
    submissions: Option<Submissions>,
    slots: Arc<HsaSlots>,
}

/// The buffers of an agent, by address: the device allocates them, copy workers read them.
#[derive(Debug, Default)]
pub struct HsaSlots(Mutex<BTreeMap<u64, Arc<Memory>>>);

impl HsaSlots {
    fn insert(&self, memory: Memory) -> u64 {
        let address = memory.address().addr().get() as u64;
        self.0.lock().insert(address, Arc::new(memory));
        address
    }

    fn remove(&self, address: u64) -> Option<Arc<Memory>> {
        self.0.lock().remove(&address)
    }
}

impl SlotReader for HsaSlots {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        // Copied without the lock: a slot may take a while, and other contexts wait for their addresses.
        let found = {
            let slots = self.0.lock();
            let found = slots.range(..=address).next_back();
            found.map(|(&base, memory)| (Arc::clone(memory), (address - base) as usize))
        };
        let (memory, offset) = found.ok_or(DeviceError::NoBuffer { address, length: into.len() })?;
        Ok(memory.copy_out(offset, into)?)
    }
}

/// The submission queue with the thread that waits for it.
///
/// Fields drop in this order: no more waits, the thread ends, then the queue, then its signal.
#[derive(Debug)]
struct Submissions {
    destroyed: Arc<AtomicBool>,
    waiter: ActorThread<Awaited>,
    queue: Arc<HsaQueue>,
    /// 1 while a submission is in flight, 0 when it retired.
    retired: Arc<HsaSignal>,
}

/// A submission in flight.
struct Awaited(Completion);

impl std::fmt::Debug for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Awaited")
    }
}

/// Waits for the submission in flight, on a thread of its own: the owner never waits for the GPU.
struct Waiter {
    queue: Arc<HsaQueue>,
    retired: Arc<HsaSignal>,
    destroyed: Arc<AtomicBool>,
}

impl Actor for Waiter {
    type Message = Awaited;
    const NAME: &'static str = "wavescope-wait";

    fn handle(&mut self, Awaited(completion): Awaited) -> ControlFlow<()> {
        while let Err(error) = self.retired.wait_below(1, GLANCE) {
            // Any other error comes back at once, every time: nobody will know when the submission ends.
            if !matches!(error, wavescope_hsa::Error::TimedOut { .. }) {
                completion.finish(Err(error.into()));
                return ControlFlow::Continue(());
            }
            if let Some(status) = self.queue.error() {
                completion.finish(Err(wavescope_hsa::Error::QueueStopped { status }.into()));
                return ControlFlow::Continue(());
            }
            if self.destroyed.load(Ordering::Acquire) {
                completion.finish(Err(error.into()));
                return ControlFlow::Break(());
            }
        }
        completion.finish(Ok(()));
        ControlFlow::Continue(())
    }
}

impl HsaDevice {
    /// The device of `agent`; nothing is allocated yet.
    pub fn new(hsa: Hsa, agent: AgentId) -> Self {
        Self { hsa, agent, submissions: None, slots: Arc::default() }
    }

    /// Reads the buffers that this device allocates.
    pub fn slots(&self) -> Arc<HsaSlots> {
        Arc::clone(&self.slots)
    }
}

impl Submissions {
    fn new(hsa: &Hsa, agent: AgentId, packets: usize) -> Result<Self, DeviceError> {
        let queue = Arc::new(HsaQueue::new(hsa, agent, packets as u32)?);
        let retired = Arc::new(HsaSignal::new(hsa, 0)?);
        let destroyed = Arc::new(AtomicBool::new(false));
        let waiter = Waiter {
            queue: Arc::clone(&queue),
            retired: Arc::clone(&retired),
            destroyed: Arc::clone(&destroyed),
        };
        // The owner has one submission in flight: one place is enough, one more covers an abandoned one.
        let waiter = spawn(waiter, Places { requests: 1, notices: 2 }).map_err(|error| {
            tracing::error!(%error, "nobody can wait for the trace queue");
            DeviceError::Unwatched
        })?;
        Ok(Self { destroyed, waiter, queue, retired })
    }

    fn submit(&self, packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError> {
        let Some((last, rest)) = packets.split_last() else {
            done.finish(Ok(()));
            return Ok(());
        };
        let mut last = *last;
        last.set_completion_signal(self.retired.handle().handle);
        let mut batch = rest.to_vec();
        batch.push(last);
        self.retired.store(1);
        if let Err(error) = self.queue.submit(&batch, ROOM) {
            // The error is the answer; a completion that is dropped would be a second one.
            std::mem::forget(done);
            return Err(error.into());
        }
        // Dropping the completion reports that nobody waits.
        if self.waiter.address().notify(Awaited(done)).is_err() {
            tracing::error!("two submissions of one trace owner in flight");
        }
        Ok(())
    }
}

impl Drop for Submissions {
    fn drop(&mut self) {
        self.destroyed.store(true, Ordering::Release);
    }
}

impl Device for HsaDevice {
    fn create_queue(&mut self, packets: usize) -> Result<(), DeviceError> {
        debug_assert!(packets <= QUEUE_PACKETS);
        self.submissions = Some(Submissions::new(&self.hsa, self.agent, packets)?);
        Ok(())
    }

    fn destroy_queue(&mut self) {
        self.submissions = None;
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<u64, DeviceError> {
        let kind = match buffer {
            BufferId::Output(_) => MemoryKind::Device,
            BufferId::Staging(_) => MemoryKind::Host,
        };
        let memory = Memory::allocate(&self.hsa, self.agent, kind, bytes as usize)?;
        Ok(self.slots.insert(memory))
    }

    fn free(&mut self, _buffer: BufferId, address: u64) {
        drop(self.slots.remove(address));
    }

    fn leak(&mut self, _buffer: BufferId, address: u64) {
        if let Some(memory) = self.slots.remove(address) {
            // A worker may hold it too: this reference is never given back.
            std::mem::forget(memory);
        }
    }

    fn submit(&mut self, packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError> {
        match &self.submissions {
            Some(submissions) => submissions.submit(packets, done),
            None => Err(DeviceError::Unwatched),
        }
    }
}
