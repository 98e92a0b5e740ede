//! The technique `doorbell`: a queue front of our own before a plain hardware queue.
//!
//! The application gets a queue whose ring, indices and doorbell are ours. The table's index and signal functions answer
//! for it; a store to its doorbell makes us read the packets, rewrite them and copy them to the hardware queue. No part
//! of the runtime's event thread is involved, and batches may have any length.
//!
//! # Who reads the ring
//!
//! One thread at a time, whoever finds the front idle: the thread that rings, or the front's worker. Nobody waits for
//! it. A thread that finds it busy leaves its doorbell value behind; the reader looks again before it leaves.
//!
//! ```text
//!   ring(value):  rung = max(rung, value + 1);  pump
//!   pump:         while not swap(busy, true):
//!                     read packets until the first slot that is not written, at most to `rung`
//!                     busy = false
//!                     nothing new? return
//! ```
//!
//! Both the doorbell value and `busy` are sequentially consistent, so either the reader sees the new value or the ringer
//! sees the front idle.
//!
//! # What must hold
//!
//! * A slot is read when its header says that it is written, however the doorbells are ordered: several producers fill
//!   slots out of order.
//! * The application's read index moves when a packet was copied and its slot is INVALID again.
//! * When the hardware ring is full, the rest stays where it is and the worker goes on later. The ringing thread must
//!   not wait: the ring may be waiting for a signal which this very thread sets next.
//! * The front's block is the head of a whole `amd_queue_v2_t` in memory that the agent can access, with the indices at
//!   their fixed places and the runtime's own pointer behind it: applications and kernels look into it.

mod block;
pub(crate) mod entries;
mod hardware;
pub(crate) mod registry;
mod worker;

use std::ptr::NonNull;
use std::sync::Arc;

use hsa_sys::hsa_queue_t;
use wavescope_core::AqlPacket;
use wavescope_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wavescope_core::sync::{Deadline, Mutex, thread};

use crate::device::{Device, Signal};
use crate::engine::QueueHandle;
use crate::thread_mark::InsideHook;

pub(crate) use block::Block;
pub(crate) use hardware::HardwareQueue;
pub(crate) use worker::{SILENT, Worker};

/// Packets that are read and rewritten at a time. Bounds what is kept aside when the hardware ring is full.
const CHUNK: usize = 256;

/// A queue of the application with the hardware queue behind it.
pub(crate) struct Front {
    block: Block,
    hardware: HardwareQueue,
    handle: QueueHandle,
    doorbell: Signal,
    /// Destroys the doorbell's signal at the end.
    device: Arc<dyn Device>,
    /// Goes on where the hardware ring was full.
    worker: Arc<Worker>,
    /// One more than the highest doorbell value.
    rung: AtomicU64,
    busy: AtomicBool,
    /// The hardware ring was full: the worker goes on.
    stalled: AtomicBool,
    /// A mark is to be written between two batches.
    marking: AtomicBool,
    closed: AtomicBool,
    reader: Mutex<Reader>,
}

/// What belongs to whoever reads the ring.
#[derive(Debug, Default)]
struct Reader {
    /// Index of the next packet of the application.
    next: u64,
    batch: Vec<AqlPacket>,
    /// Rewritten packets that did not fit the hardware ring.
    kept: Vec<AqlPacket>,
    /// How many of `kept` went out since.
    sent: usize,
}

impl Front {
    pub(crate) fn new(
        block: Block,
        hardware: HardwareQueue,
        handle: QueueHandle,
        doorbell: Signal,
        device: Arc<dyn Device>,
        worker: Arc<Worker>,
    ) -> Self {
        Self {
            block,
            hardware,
            handle,
            doorbell,
            device,
            worker,
            rung: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            marking: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            reader: Mutex::new(Reader::default()),
        }
    }

    /// What the application holds.
    pub(crate) fn pointer(&self) -> NonNull<hsa_queue_t> {
        self.block.pointer()
    }

    /// The runtime's own queue.
    pub(crate) fn hardware(&self) -> &HardwareQueue {
        &self.hardware
    }

    pub(crate) fn handle(&self) -> &QueueHandle {
        &self.handle
    }

    pub(crate) fn doorbell(&self) -> Signal {
        self.doorbell
    }

    pub(crate) fn write_index(&self) -> &std::sync::atomic::AtomicU64 {
        self.block.write_index()
    }

    pub(crate) fn read_index(&self) -> &std::sync::atomic::AtomicU64 {
        self.block.read_index()
    }

    /// Whether `worker` goes on with it.
    pub(crate) fn is_of(&self, worker: &Worker) -> bool {
        std::ptr::eq(&raw const *self.worker, worker)
    }

    /// A doorbell: packets up to index `value` may be read.
    pub(crate) fn ring(&self, value: u64) {
        self.rung.fetch_max(value.wrapping_add(1), Ordering::SeqCst);
        if self.pump() {
            self.worker.wake();
        }
    }

    /// Has a mark written behind what was enqueued so far. `false` if the front is closed.
    pub(crate) fn request_mark(&self) -> bool {
        self.marking.store(true, Ordering::SeqCst);
        if self.pump() {
            self.worker.wake();
        }
        !self.closed.load(Ordering::Acquire)
    }

    /// Reads nothing more, and waits until nobody reads: the hardware queue may go after that. A callback that destroys the
    /// queue it is called for is not waited for. `false` if somebody still reads at the `deadline`.
    pub(crate) fn close(&self, deadline: Deadline) -> bool {
        self.closed.store(true, Ordering::Release);
        // Whoever reads makes the front idle again; who comes after that finds it busy for good.
        while self.busy.swap(true, Ordering::SeqCst) {
            if InsideHook::is_current() {
                return true;
            }
            if deadline.is_over() {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    /// The value that the doorbell's signal has. Returns whether that is news.
    pub(crate) fn hear(&self, value: i64) -> bool {
        let Ok(value) = u64::try_from(value) else { return false };
        let news = value >= self.rung.load(Ordering::SeqCst);
        if news {
            self.ring(value);
        }
        news
    }

    /// Whether the hardware ring was full when somebody read last.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// Reads what can be read, unless somebody does already. Returns whether the worker has to go on.
    pub(crate) fn pump(&self) -> bool {
        loop {
            if self.busy.swap(true, Ordering::SeqCst) {
                return false;
            }
            let idle = Idle(&self.busy);
            let (next, stalled) = self.read();
            self.stalled.store(stalled, Ordering::Release);
            drop(idle);
            if stalled {
                return true;
            }
            // A doorbell that found the front busy after `read` had looked, or a slot written since.
            let more = next < self.rung.load(Ordering::SeqCst) && self.block.is_written(next);
            if !more && !self.marking.load(Ordering::SeqCst) {
                return false;
            }
        }
    }

    /// Reads until there is nothing more, or no room. Returns the next index and whether there was no room.
    fn read(&self) -> (u64, bool) {
        // `busy` keeps everybody else out; the lock is for the compiler.
        let mut reader = self.reader.lock();
        loop {
            if !self.send_kept(&mut reader) {
                return (reader.next, true);
            }
            if self.marking.swap(false, Ordering::SeqCst) {
                self.handle.mark(|packets| self.send(packets, &mut reader.kept));
                continue;
            }
            let first = reader.next;
            let until = self.rung.load(Ordering::SeqCst).min(first + CHUNK as u64);
            reader.batch.clear();
            self.block.take(first, until, &mut reader.batch);
            if reader.batch.is_empty() {
                return (first, false);
            }
            reader.next = first + reader.batch.len() as u64;
            let Reader { batch, kept, .. } = &mut *reader;
            self.handle.rewrite(batch, first, |packets| self.send(packets, kept));
        }
    }

    /// Sends packets, and keeps those for which there is no room.
    fn send(&self, packets: &[AqlPacket], kept: &mut Vec<AqlPacket>) {
        let sent = self.hardware.write(packets);
        kept.extend_from_slice(&packets[sent..]);
    }

    /// Sends what did not fit before. Returns whether nothing is left.
    fn send_kept(&self, reader: &mut Reader) -> bool {
        if reader.kept.is_empty() {
            return true;
        }
        reader.sent += self.hardware.write(&reader.kept[reader.sent..]);
        let is_empty = reader.sent == reader.kept.len();
        if is_empty {
            reader.kept.clear();
            reader.sent = 0;
        }
        is_empty
    }
}

/// Makes the front idle again, also if a callback panics.
struct Idle<'a>(&'a AtomicBool);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.device.destroy_signal(self.doorbell);
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").field("queue", &self.handle.id()).finish_non_exhaustive()
    }
}

/// All fronts share ownership with the table that finds them.
pub(crate) type SharedFront = Arc<Front>;
