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
//! sees the front idle. A thread reads what it rang for and one chunk more; the rest is for the worker, so that nobody is
//! held up by what others submit all the time.
//!
//! A packet is of the thread that reserved its slot ([`owners`]). Where another reads it, that thread's number is all that
//! is known.
//!
//! # How it ends
//!
//! Whoever destroys the queue waits until nobody reads. A reader that destroys it itself, in a callback, has the hardware
//! queue destroyed at once: what it has in hand is dropped, as nothing goes to the hardware queue of a closed front. A
//! reader that is inside a callback elsewhere is waited for, for a while; then the end is left to it ([`turn`]).
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
mod owners;
pub(crate) mod pins;
pub(crate) mod registry;
pub(crate) mod table;
pub(crate) mod turn;
mod worker;

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use hsa_sys::hsa_queue_t;
use wavescope_core::AqlPacket;
use wavescope_core::ThreadId;
use wavescope_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wavescope_core::sync::{Deadline, Mutex};

use self::owners::Owners;
use self::turn::EndableTurn;
pub(crate) use self::turn::{Closed, Turn};
use crate::device::{Device, Signal};
use crate::engine::QueueHandle;
use crate::hsa_device::HsaDevice;
use crate::thread_mark::{InsideHook, WorkingFor, own_thread};

pub(crate) use block::Block;
pub(crate) use hardware::HardwareQueue;
pub(crate) use worker::{SILENT, Worker};

/// Packets that are read and rewritten at a time. Bounds what is kept aside when the hardware ring is full.
const CHUNK: usize = 256;

/// How long a callback that destroys another queue waits for that one's reader, which may be waiting for it.
pub(crate) const PATIENCE_INSIDE: Duration = Duration::from_millis(100);

/// A queue of the application with the hardware queue behind it.
pub(crate) struct Front {
    /// Freed through the runtime at the end, if that is still there.
    block: ManuallyDrop<Block>,
    hardware: HardwareQueue,
    handle: QueueHandle,
    doorbell: Signal,
    /// Destroys the doorbell's signal at the end.
    device: Arc<HsaDevice>,
    /// Goes on where the hardware ring was full.
    worker: Arc<Worker>,
    owners: Owners,
    /// One more than the highest doorbell value.
    rung: AtomicU64,
    /// One more than the highest doorbell value whose thread did not read up to it.
    left_behind: AtomicU64,
    /// Index up to which packets were rewritten, and whoever measures was asked.
    rewritten: AtomicU64,
    turn: EndableTurn<LastAct>,
    /// Something is left for the worker.
    stalled: AtomicBool,
    /// A mark is to be written between two batches.
    marking: AtomicBool,
    /// Its runtime is gone.
    over: AtomicBool,
    reader: Mutex<Reader>,
}

/// What a thread does that ends a front.
pub(crate) type LastAct = Box<dyn FnOnce(&Front) + Send>;

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

/// Why a reader leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing more can be read.
    Nothing,
    /// More than the reader may take.
    More,
    /// The hardware ring is full.
    Full,
}

/// Whom a reader reads for.
struct Share {
    /// The current thread rang for everything in front of this index.
    own_until: u64,
    /// Of what is its own, everything in front of this index was left to others before.
    own_from: u64,
    /// How many packets of others it still reads.
    spare: usize,
}

impl Front {
    pub(crate) fn new(
        block: Block,
        hardware: HardwareQueue,
        handle: QueueHandle,
        doorbell: Signal,
        device: Arc<HsaDevice>,
        worker: Arc<Worker>,
    ) -> Self {
        Self {
            owners: Owners::new(block.packets()),
            block: ManuallyDrop::new(block),
            hardware,
            handle,
            doorbell,
            device,
            worker,
            rung: AtomicU64::new(0),
            left_behind: AtomicU64::new(0),
            rewritten: AtomicU64::new(0),
            turn: EndableTurn::default(),
            stalled: AtomicBool::new(false),
            marking: AtomicBool::new(false),
            over: AtomicBool::new(false),
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

    /// The current thread reserved slots.
    pub(crate) fn reserved(&self, first: u64, count: u64) {
        self.owners.reserve(first, count);
    }

    /// Whether its runtime is gone: its memory may be gone too.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// A doorbell: packets up to index `value` may be read.
    pub(crate) fn ring(&self, value: i64) {
        // No index is negative.
        let Ok(value) = u64::try_from(value) else { return };
        let own_until = value + 1;
        self.rung.fetch_max(own_until, Ordering::SeqCst);
        let own_from = self.left_behind.load(Ordering::Relaxed);
        if self.pump(Share { own_until, own_from, spare: CHUNK }) != Left::Nothing {
            self.worker.wake();
        }
    }

    /// Has a mark written behind what was enqueued so far. `false` if the front is closed.
    pub(crate) fn request_mark(&self) -> bool {
        self.marking.store(true, Ordering::SeqCst);
        if self.pump_for_others() != Left::Nothing {
            self.worker.wake();
        }
        !self.turn.is_closed()
    }

    /// Index up to which packets are to be read by now.
    pub(crate) fn submitted(&self) -> u64 {
        let written = self.write_index().load(std::sync::atomic::Ordering::Acquire);
        self.rung.load(Ordering::SeqCst).min(written)
    }

    /// Whether packets up to that index were rewritten, or will never be.
    pub(crate) fn has_rewritten(&self, index: u64) -> bool {
        self.rewritten.load(Ordering::Acquire) >= index || self.turn.is_closed() || self.is_over()
    }

    /// Lets nothing more go to the hardware queue, and waits until nobody reads: the caller destroys that queue then. Else
    /// `act` is done by whoever reads: by the current thread when it is back from the callback it is inside of, or by
    /// another that had not left at the `deadline`.
    pub(crate) fn close(&self, deadline: Deadline, act: impl FnOnce(Closed) -> LastAct) -> Closed {
        let patience = if InsideHook::is_current() { PATIENCE_INSIDE } else { Duration::MAX };
        self.turn.end(Deadline::after(patience.min(deadline.left_or_a_moment())), act)
    }

    /// Keeps everybody from reading until [`go_on`](Self::go_on). `false` if somebody reads.
    pub(crate) fn hold(&self) -> bool {
        self.turn.hold()
    }

    /// Whether it is worth waiting for its reader to leave.
    pub(crate) fn may_be_held(&self) -> bool {
        !self.turn.is_mine() && !self.turn.is_closed()
    }

    /// Whoever held it leaves; the worker reads what came meanwhile.
    pub(crate) fn go_on(&self) {
        self.stalled.store(true, Ordering::Release);
        self.leave();
        self.worker.wake();
    }

    /// Its runtime is gone: nothing of it is touched any more.
    pub(crate) fn set_over(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.turn.close();
    }

    /// The value that the doorbell's signal has. Returns whether that is news.
    pub(crate) fn hear(&self, value: i64) -> bool {
        let Ok(value) = u64::try_from(value) else { return false };
        let news = value >= self.rung.load(Ordering::SeqCst);
        if news {
            self.rung.fetch_max(value.saturating_add(1), Ordering::SeqCst);
            // Whoever comes next goes on with it.
            self.stalled.store(true, Ordering::Release);
        }
        news
    }

    /// Whether somebody left something to the worker.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// As much of what others submitted as one thread reads at a time.
    pub(crate) fn pump_for_others(&self) -> Left {
        self.pump(Share { own_until: 0, own_from: 0, spare: CHUNK })
    }

    /// Reads what can be read, unless somebody does already. Returns whether the worker has to go on.
    fn pump(&self, mut share: Share) -> Left {
        loop {
            if !self.turn.take() {
                self.left_behind.fetch_max(share.own_until, Ordering::SeqCst);
                return Left::Nothing;
            }
            let leaving = Leaving(self);
            let (next, left) = self.read(&mut share);
            self.stalled.store(left != Left::Nothing, Ordering::Release);
            if next < share.own_until {
                self.left_behind.fetch_max(share.own_until, Ordering::SeqCst);
            }
            drop(leaving);
            if left != Left::Nothing || self.turn.is_closed() {
                return left;
            }
            // A doorbell that found the front busy after `read` had looked, or a slot written since.
            let more = next < self.rung.load(Ordering::SeqCst) && self.block.is_written(next);
            if !more && !self.marking.load(Ordering::SeqCst) {
                return left;
            }
        }
    }

    /// Reads until there is nothing more, or no room, or more than its share. Returns the next index and which it was.
    fn read(&self, share: &mut Share) -> (u64, Left) {
        // `busy` keeps everybody else out; the lock is for the compiler.
        let mut reader = self.reader.lock();
        loop {
            if self.turn.is_closed() {
                return (reader.next, Left::Nothing);
            }
            if !self.send_kept(&mut reader) {
                return (reader.next, Left::Full);
            }
            if self.marking.swap(false, Ordering::SeqCst) {
                self.handle.mark(|packets| self.send(packets, &mut reader.kept));
                continue;
            }
            let first = reader.next;
            let rung = self.rung.load(Ordering::SeqCst);
            let own = share.own_until.saturating_sub(first);
            let may = if own > 0 { own.min(CHUNK as u64) } else { share.spare as u64 };
            if may == 0 && first < rung && self.block.is_written(first) {
                return (first, Left::More);
            }
            reader.batch.clear();
            self.block.take(first, rung.min(first + may), &mut reader.batch);
            if reader.batch.is_empty() {
                return (first, Left::Nothing);
            }
            if own == 0 {
                share.spare -= reader.batch.len();
            }
            reader.next = first + reader.batch.len() as u64;
            self.rewrite(&mut reader, first, share);
            self.rewritten.store(reader.next, Ordering::Release);
        }
    }

    /// Rewrites the batch, in pieces whose packets are of one thread.
    fn rewrite(&self, reader: &mut Reader, first: u64, share: &Share) {
        let Reader { batch, kept, .. } = reader;
        let me = own_thread();
        let mut begin = 0;
        while begin < batch.len() {
            let of = |index: usize| self.submitter(first + index as u64, me, share);
            let who = of(begin);
            let end = (begin + 1..batch.len()).find(|&index| of(index) != who).unwrap_or(batch.len());
            let _for = match who {
                Submitter::Current if WorkingFor::is_other() => Some(WorkingFor::itself()),
                Submitter::Current => None,
                Submitter::Other(thread) => Some(WorkingFor::other(thread)),
            };
            let piece = &batch[begin..end];
            self.handle.rewrite(piece, first + begin as u64, |packets| self.send(packets, kept));
            begin = end;
        }
    }

    fn submitter(&self, index: u64, me: Option<ThreadId>, share: &Share) -> Submitter {
        let owner = self.owners.of(index);
        // Of its own packets a thread only knows what it did for those that it rings for now.
        let is_own = owner.is_some() && owner == me && (share.own_from..share.own_until).contains(&index);
        if is_own { Submitter::Current } else { Submitter::Other(owner) }
    }

    /// Sends packets, and keeps those for which there is no room. What comes to a closed front is dropped.
    fn send(&self, packets: &[AqlPacket], kept: &mut Vec<AqlPacket>) {
        if self.turn.is_closed() {
            return;
        }
        // Behind packets that wait already, in pieces of one batch.
        let sent = if kept.is_empty() { self.hardware.write(packets) } else { 0 };
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

    /// Whoever reads leaves, and does what was left to it.
    fn leave(&self) {
        if let Some(act) = self.turn.leave() {
            act(self);
        }
    }
}

/// Who submitted a packet, as its reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Submitter {
    Current,
    Other(Option<ThreadId>),
}

/// The reader leaves, also if a callback panics.
struct Leaving<'a>(&'a Front);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.device.destroy_signal(self.doorbell);
        // Not while the runtime goes down, and what went with it is no memory of ours.
        if let Some(_pass) = self.device.gate().enter() {
            // SAFETY: the front is going, so nobody uses the block after this.
            unsafe { ManuallyDrop::drop(&mut self.block) };
        }
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").field("queue", &self.handle.id()).finish_non_exhaustive()
    }
}

/// All fronts share ownership with the table that finds them.
pub(crate) type SharedFront = Arc<Front>;
