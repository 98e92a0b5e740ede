//! The intercept queue: an application's ring in front of a hardware queue, with handlers that rewrite packets on the
//! way, and with the manners of ROCr 7.2.4 (`core/runtime/intercept_queue.cpp` in ROCm/rocm-systems).
//!
//! * A doorbell takes *all* finished packets of the application's ring and hands them to the newest handler in one
//!   call, with the queue's lock held. A run that wraps the ring is handed over as a copy, and ROCr's copy has room
//!   for [`WRAP_LIMIT`] packets: where ROCr writes past it, this queue ends the process with a message.
//! * The writer that a handler gets leads to the handler registered before it, the last one to the hardware ring.
//! * A rewrite that fits the hardware ring goes in whole or not at all; one that does not fit goes in by pieces. What
//!   is left *overflows*: it waits for a barrier packet (the *retry point*) whose completion rings this queue again on
//!   the event thread. If a handler calls its writer again meanwhile, packets overtake each other.
//! * A doorbell from inside a handler, of this queue or another, is left to the event thread.
//! * A doorbell that a device rings, by a store to the signal's value, is not heard: the event thread watches a signal of
//!   its own, and ROCr 7.2.4 shows devices only a copy of that one's block.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use hsa_sys::{HSA_SIGNAL_CONDITION_NE, amd_aql_intercept_marker_t, hsa_queue_t, hsa_queue_type32_t};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};

use super::allocations::Allocations;
use super::async_events::{AsyncEvents, Handler};
use super::error::Outcome;
use super::hardware_queue::HardwareQueue;
use super::queue_block::{Limits, QueueBlock};
use super::signal::{Ring, Signal, Wake};
use super::wait::Condition;

/// Packets that ROCr 7.2.4 can copy out of a ring that they wrap around: into a buffer of this many, without a bound.
pub(super) const WRAP_LIMIT: u64 = 256;

/// The smallest ring: a packet, a retry point in process, and room for the next retry point.
pub(super) const SMALLEST: u32 = 3;

/// Value of the deferred doorbell while nothing rings it from a handler or a retry point.
const QUIET: i64 = -1;

/// Vendor format of the packet that calls back when it would be written to the hardware ring.
const INTERCEPT_MARKER: u8 = 0xFE;

/// A handler's writer.
type Writer = unsafe extern "C-unwind" fn(packets: *const c_void, count: u64);

/// A registered handler.
pub(super) type PacketHandler = unsafe extern "C-unwind" fn(
    packets: *const c_void,
    count: u64,
    user_packet_index: u64,
    data: *mut c_void,
    writer: Option<Writer>,
);

#[derive(Clone, Copy)]
struct Interceptor {
    function: PacketHandler,
    data: *mut c_void,
}

// SAFETY: the pointer only goes back to the function it came with, which HSA calls from any thread that rings.
unsafe impl Send for Interceptor {}
// SAFETY: as for `Send`; nothing is reached through the pointer here.
unsafe impl Sync for Interceptor {}

/// An application's queue in front of a hardware queue.
pub(super) struct InterceptQueue {
    block: QueueBlock,
    hardware: HardwareQueue,
    /// The application's: a store through the API comes here, one to its value goes nowhere.
    doorbell: &'static Signal,
    /// What the event thread watches.
    deferred: &'static Signal,
    interceptors: RwLock<Vec<Interceptor>>,
    /// Next packet of the application's ring. The lock is held while handlers run.
    next: Mutex<u64>,
    submission: Mutex<Submission>,
    active: AtomicBool,
    events: Arc<AsyncEvents>,
}

#[derive(Default)]
struct Submission {
    /// Packets that found no room, oldest first.
    overflow: Vec<AqlPacket>,
    /// Index behind the last retry point in the hardware ring: it is pending until the read index gets there. While it is
    /// only next, the ring may be full, and another one would overwrite it.
    retry_end: u64,
}

/// Where a thread is inside handlers.
struct Cursor {
    queue: Arc<InterceptQueue>,
    /// Handlers below the running one.
    below: usize,
    packet_index: u64,
}

thread_local! {
    static CURSOR: RefCell<Option<Cursor>> = const { RefCell::new(None) };
}

impl InterceptQueue {
    /// Puts a queue in front of `hardware`.
    pub(super) fn create(
        hardware: HardwareQueue,
        id: u64,
        kind: hsa_queue_type32_t,
        limits: Limits,
        memory: &Arc<Allocations>,
        events: &Arc<AsyncEvents>,
    ) -> Outcome<Arc<Self>> {
        let block = QueueBlock::allocate(memory, hardware.block().packets())?;
        let doorbell = Signal::create(QUIET, Wake::Poll);
        let deferred = Signal::create(QUIET, Wake::Interrupt);
        block.describe(id, kind, doorbell.handle(), limits);
        let queue = Arc::new(Self {
            block,
            hardware,
            doorbell,
            deferred,
            interceptors: RwLock::default(),
            next: Mutex::new(0),
            submission: Mutex::default(),
            active: AtomicBool::new(true),
            events: Arc::clone(events),
        });
        doorbell.connect(Arc::new(Front(Arc::downgrade(&queue))));
        let condition = Condition { signal: deferred, condition: HSA_SIGNAL_CONDITION_NE, compare: QUIET };
        let ringer = Arc::downgrade(&queue);
        events.watch(condition, Handler::Internal(Box::new(move |value| ring_later(&ringer, value))));
        Ok(queue)
    }

    pub(super) fn block(&self) -> &QueueBlock {
        &self.block
    }

    pub(super) fn hardware(&self) -> &HardwareQueue {
        &self.hardware
    }

    /// Adds a handler before all others.
    pub(super) fn register(&self, function: PacketHandler, data: *mut c_void) {
        self.interceptors
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Interceptor { function, data });
    }

    /// Stops taking doorbells; returns when no handler and no deferred doorbell runs any more.
    pub(super) fn close(&self) {
        self.active.store(false, Ordering::Release);
        self.doorbell.disconnect();
        self.doorbell.destroy();
        self.deferred.destroy();
        self.events.quiesce();
        drop(self.next.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The application, or the event thread in its place, rang the doorbell.
    fn ring(self: &Arc<Self>, index: u64) {
        if !self.active.load(Ordering::Acquire) {
            return;
        }
        if is_inside() {
            self.deferred.value().store(index.cast_signed(), Ordering::Release);
            self.deferred.notify();
            return;
        }
        self.process();
    }

    /// Takes what the application's ring holds through the handlers.
    fn process(self: &Arc<Self>) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.submit_overflow() {
            // No room for the old packets: none for new ones either. The retry point rings again.
            return;
        }
        let first = *next;
        let count = self.finished_packets(first);
        if count == 0 {
            return;
        }
        self.hand_over(first, count);
        (first..first + count).for_each(|index| self.block.invalidate(index));
        *next = first + count;
        self.block.read_index().store(*next, Ordering::Release);
    }

    /// Finished packets from `first` on, at most a ring full.
    fn finished_packets(&self, first: u64) -> u64 {
        let written = self.block.write_index().load(Ordering::Acquire).saturating_sub(first);
        let end = first + written.min(u64::from(self.block.packets()));
        (first..end).take_while(|&index| self.block.is_valid(index)).count() as u64
    }

    fn hand_over(self: &Arc<Self>, first: u64, count: u64) {
        let wraps = self.block.slot(first) + count > u64::from(self.block.packets());
        let copy: Vec<AqlPacket>;
        let packets = if wraps {
            if count > WRAP_LIMIT {
                refuse_wrap(count, self.block.packets());
            }
            copy = (first..first + count).map(|index| self.block.load(index)).collect();
            copy.as_ptr()
        } else {
            self.block.packet_pointer(first)
        };
        let handlers = self.interceptors.read().unwrap_or_else(PoisonError::into_inner).len();
        let inside = Inside::enter(Cursor { queue: Arc::clone(self), below: handlers, packet_index: first });
        self.write(packets.cast(), count, handlers, first);
        drop(inside);
    }

    /// Hands packets to the handler number `level` (from 1), or to the hardware with 0.
    fn write(&self, packets: *const c_void, count: u64, level: usize, packet_index: u64) {
        if level == 0 {
            // SAFETY: handlers pass packets to the writer under the contract of hsa_amd_queue_intercept_packet_writer:
            // `count` readable packets. Without handlers the pointer is our own.
            let packets = unsafe { packets_at(packets, count) };
            self.submit_or_keep(&packets);
            return;
        }
        let interceptor = self.interceptors.read().unwrap_or_else(PoisonError::into_inner)[level - 1];
        set_below(level - 1);
        // SAFETY: the tool registered the function for exactly this call; it stays registered until the queue is
        // gone, and the packets are readable for the duration of the call.
        unsafe {
            (interceptor.function)(packets, count, packet_index, interceptor.data, Some(packet_writer))
        };
        set_below(level);
    }

    fn submit_overflow(&self) -> bool {
        let mut submission = self.submission();
        if submission.overflow.is_empty() {
            return true;
        }
        let waiting = std::mem::take(&mut submission.overflow);
        let written = self.submit(&mut submission, &waiting, true);
        submission.overflow = waiting[written..].to_vec();
        submission.overflow.is_empty()
    }

    fn submit_or_keep(&self, packets: &[AqlPacket]) {
        let mut submission = self.submission();
        let written = self.submit(&mut submission, packets, false);
        submission.overflow.extend_from_slice(&packets[written..]);
    }

    /// Writes packets to the hardware ring as room allows. Returns how many were dealt with.
    fn submit(&self, submission: &mut Submission, packets: &[AqlPacket], retrying: bool) -> usize {
        let wanted = packets.iter().filter(|packet| !is_marker(packet)).count() as u64;
        let write = self.hardware.block().write_index().load(Ordering::Relaxed);
        let read = self.hardware.block().read_index().load(Ordering::Acquire);
        let pending_retry = submission.retry_end > read;
        let capacity = u64::from(self.hardware.block().packets());
        let room = capacity - (write - read);
        let granted = grant(Demand { wanted, room, capacity, pending_retry, retrying });
        if granted < wanted && !pending_retry {
            submission.retry_end = self.submit_retry_point() + 1;
        }
        self.copy_in(packets, granted)
    }

    /// Writes a barrier packet that rings this queue when everything before it has run.
    fn submit_retry_point(&self) -> u64 {
        let mut barrier = AqlPacket([0; 16]);
        barrier.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::None, Fence::None));
        barrier.set_completion_signal(self.deferred.handle().handle);
        let index = self.hardware.block().write_index().fetch_add(1, Ordering::AcqRel);
        self.hardware.block().store_body(index, &barrier);
        self.hardware.block().publish(index, &barrier);
        self.hardware.ring(index);
        index
    }

    /// Copies `granted` packets (and the markers among them) to the hardware ring and rings once.
    fn copy_in(&self, packets: &[AqlPacket], granted: u64) -> usize {
        let block = self.hardware.block();
        let first = block.write_index().fetch_add(granted, Ordering::AcqRel);
        let (mut written, mut used) = (0, 0);
        let mut header = None;
        for packet in packets {
            if is_marker(packet) {
                self.call_marker(packet, first + written);
            } else if written == granted {
                break;
            } else {
                block.store_body(first + written, packet);
                // The first header goes in last: the device begins when all of them are there.
                match header {
                    None => header = Some(packet),
                    Some(_) => block.publish(first + written, packet),
                }
                written += 1;
            }
            used += 1;
        }
        if let Some(packet) = header {
            block.publish(first, packet);
            self.hardware.ring(first + written - 1);
        }
        used
    }

    fn call_marker(&self, packet: &AqlPacket, packet_index: u64) {
        let marker: *const amd_aql_intercept_marker_t = std::ptr::from_ref(packet).cast();
        // SAFETY: a packet and a marker are 64 bytes; the function pointer inside is the tool's or null, both values
        // of an `Option` of a function pointer.
        let callback = unsafe { (*marker).callback };
        let Some(callback) = callback else { return };
        let queue: *mut hsa_queue_t = self.hardware.block().pointer();
        // SAFETY: the tool put the function into the packet for this call (hsa_api_trace.h, intercept marker).
        unsafe { callback(marker, queue, packet_index) };
    }

    fn submission(&self) -> MutexGuard<'_, Submission> {
        self.submission.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The doorbell's way to the queue.
struct Front(Weak<InterceptQueue>);

impl Ring for Front {
    fn ring(&self, index: u64) {
        if let Some(queue) = self.0.upgrade() {
            queue.ring(index);
        }
    }
}

/// What a rewrite needs and what there is.
#[derive(Clone, Copy, Debug)]
struct Demand {
    wanted: u64,
    room: u64,
    capacity: u64,
    pending_retry: bool,
    retrying: bool,
}

/// How many packets may go in now. A place stays free for the retry point unless one is pending.
fn grant(demand: Demand) -> u64 {
    let Demand { wanted, room, capacity, pending_retry, retrying } = demand;
    let reserve = u64::from(!pending_retry);
    if wanted >= capacity {
        return room.saturating_sub(reserve).min(wanted);
    }
    if room >= wanted + reserve {
        return wanted;
    }
    // Packets that already waited go in by pieces, so that a retry always gets on.
    if retrying && room > 1 + reserve { room - reserve } else { 0 }
}

/// On the event thread: a handler rang, or a retry point has run.
fn ring_later(queue: &Weak<InterceptQueue>, value: i64) -> bool {
    let Some(queue) = queue.upgrade().filter(|queue| queue.active.load(Ordering::Acquire)) else {
        return false;
    };
    queue.deferred.value().store(QUIET, Ordering::Release);
    queue.ring(value.cast_unsigned());
    true
}

fn is_marker(packet: &AqlPacket) -> bool {
    packet.header().kind() == PacketType::VENDOR_SPECIFIC && (packet.0[0] >> 16) as u8 == INTERCEPT_MARKER
}

/// The writer that handlers get.
///
/// # Safety
/// `packets` is valid for reading `count` packets, as `hsa_amd_queue_intercept_packet_writer` demands.
unsafe extern "C-unwind" fn packet_writer(packets: *const c_void, count: u64) {
    let found = CURSOR.try_with(|cursor| {
        let cursor = cursor.borrow();
        cursor.as_ref().map(|at| (Arc::clone(&at.queue), at.below, at.packet_index))
    });
    match found {
        Ok(Some((queue, below, packet_index))) => queue.write(packets, count, below, packet_index),
        _ => tracing::error!("a packet writer was called outside the handler that it was given to"),
    }
}

/// Copies what a handler wrote.
///
/// # Safety
/// `packets` is valid for reading `count` packets.
unsafe fn packets_at(packets: *const c_void, count: u64) -> Vec<AqlPacket> {
    let packet = |index| {
        let place = packets.cast::<AqlPacket>().wrapping_add(index as usize);
        // SAFETY: inside the range of the precondition; tools need not align their packets to 64 bytes.
        unsafe { place.read_unaligned() }
    };
    (0..count).map(packet).collect()
}

fn is_inside() -> bool {
    CURSOR.try_with(|cursor| cursor.borrow().is_some()).unwrap_or(false)
}

fn set_below(below: usize) {
    let _ = CURSOR.try_with(|cursor| {
        if let Some(cursor) = cursor.borrow_mut().as_mut() {
            cursor.below = below;
        }
    });
}

/// Marks the thread as inside handlers until dropped, also when a handler unwinds.
struct Inside;

impl Inside {
    fn enter(cursor: Cursor) -> Self {
        let _ = CURSOR.try_with(|place| *place.borrow_mut() = Some(cursor));
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let cursor = CURSOR.try_with(|place| place.borrow_mut().take());
        drop(cursor);
    }
}

/// ROCr would now overwrite memory of its own. Going on would hide from a test what an application will meet.
fn refuse_wrap(count: u64, packets: u32) -> ! {
    eprintln!(
        "wavescope: {count} unconsumed packets wrap around the ring of an intercept queue of {packets} packets; \
         ROCr 7.2.4 copies such a run into a buffer of {WRAP_LIMIT} packets without a bound and overwrites its own \
         memory (hsa_amd_queue_intercept_create); the in-process runtime stops here instead"
    );
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(wanted: u64, room: u64, pending_retry: bool, retrying: bool) -> Demand {
        Demand { wanted, room, capacity: 64, pending_retry, retrying }
    }

    // Cases of intercept_queue.cpp's Submit, by hand.
    #[test]
    fn rewrite_goes_in_whole_or_not_at_all_unless_it_never_fits() {
        assert_eq!(grant(demand(10, 64, false, false)), 10);
        assert_eq!(grant(demand(10, 11, false, false)), 10);
        assert_eq!(grant(demand(10, 10, false, false)), 0, "no place for the retry point");
        assert_eq!(grant(demand(10, 10, true, false)), 10, "a retry point is there already");
        assert_eq!(grant(demand(64, 64, false, false)), 63);
        assert_eq!(grant(demand(200, 5, true, false)), 5);
        assert_eq!(grant(demand(10, 5, false, true)), 4, "waiting packets go in by pieces");
        assert_eq!(grant(demand(10, 2, false, true)), 0);
    }
}
