//! Signals: the `amd_signal_t` that handles point at, and what the runtime keeps behind it.
//!
//! The memory of signals is recycled but never given back to the operating system, as in ROCr: a completion that the
//! device writes late lands in a signal, if not the right one. A `&'static Signal` is therefore always sound.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use hsa_sys::{
    AMD_SIGNAL_KIND_DOORBELL, AMD_SIGNAL_KIND_INVALID, AMD_SIGNAL_KIND_USER, amd_signal_t, hsa_signal_t,
};

use super::address_map::{AddressMap, GpuSet, Range};
use super::event_slots::{self, EventId};

/// Signals made at a time.
const CHUNK: usize = 256;

static POOL: Mutex<Vec<&'static Signal>> = Mutex::new(Vec::new());

/// Every chunk of signals and the mailboxes: memory that any device may write at any time.
static SIGNAL_MEMORY: LazyLock<AddressMap> = LazyLock::new(|| {
    let map = AddressMap::default();
    let (base, bytes) = event_slots::mailboxes();
    map.insert(Range { base, bytes, gpus: GpuSet::ALL });
    map
});

/// The memory of signals and mailboxes.
pub(super) fn memory() -> &'static AddressMap {
    &SIGNAL_MEMORY
}

/// What a store to a doorbell signal does.
pub(super) trait Ring: Send + Sync {
    /// Packets up to and including `index` are in the ring.
    fn ring(&self, index: u64);
}

/// One signal. The first 64 bytes are `amd_signal_t` (`amd_hsa_signal.h`); the rest is the runtime's own.
#[repr(C, align(64))]
pub(super) struct Signal {
    kind: AtomicI64,
    /// The value, or for a hardware doorbell its address (`hardware_doorbell_ptr`).
    value: AtomicI64,
    event_mailbox: AtomicU64,
    event_id: AtomicU32,
    reserved: AtomicU32,
    start_ticks: AtomicU64,
    end_ticks: AtomicU64,
    queue: AtomicU64,
    reserved_tail: AtomicU64,
    /// [`ALIVE`] while created; tells a destroyed or made-up handle.
    life: AtomicU64,
    /// Counts creations, so that a reference to an earlier life is recognised.
    generation: AtomicU64,
    /// Whether `doorbell` is worth a look.
    is_doorbell: AtomicBool,
    doorbell: RwLock<Option<Arc<dyn Ring>>>,
}

const ALIVE: u64 = 0x5349_474e_414c_0001;

const _: () = assert!(size_of::<amd_signal_t>() == 64);
const _: () = assert!(std::mem::offset_of!(Signal, kind) == std::mem::offset_of!(amd_signal_t, kind));
const _: () = assert!(std::mem::offset_of!(Signal, value) == 8);
const _: () = assert!(
    std::mem::offset_of!(Signal, event_mailbox) == std::mem::offset_of!(amd_signal_t, event_mailbox_ptr)
);
const _: () = assert!(std::mem::offset_of!(Signal, event_id) == std::mem::offset_of!(amd_signal_t, event_id));
const _: () =
    assert!(std::mem::offset_of!(Signal, start_ticks) == std::mem::offset_of!(amd_signal_t, start_ts));
const _: () = assert!(std::mem::offset_of!(Signal, end_ticks) == std::mem::offset_of!(amd_signal_t, end_ts));
const _: () = assert!(std::mem::offset_of!(Signal, queue) == 48);
const _: () = assert!(std::mem::offset_of!(Signal, life) == size_of::<amd_signal_t>());

/// Whether a new signal gets an interrupt event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Waits on it sleep, as long as the process has events left.
    Interrupt,
    /// Only the device and polling look at it.
    Poll,
}

impl Signal {
    fn blank() -> Self {
        Self {
            kind: AtomicI64::new(AMD_SIGNAL_KIND_INVALID.0 as i64),
            value: AtomicI64::new(0),
            event_mailbox: AtomicU64::new(0),
            event_id: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            start_ticks: AtomicU64::new(0),
            end_ticks: AtomicU64::new(0),
            queue: AtomicU64::new(0),
            reserved_tail: AtomicU64::new(0),
            life: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            is_doorbell: AtomicBool::new(false),
            doorbell: RwLock::new(None),
        }
    }

    /// Creates a signal of kind USER.
    pub(super) fn create(value: i64, wake: Wake) -> &'static Self {
        let signal = Self::recycled();
        let event = if wake == Wake::Interrupt { EventId::take() } else { None };
        signal.event_mailbox.store(event.map_or(0, EventId::mailbox), Ordering::Relaxed);
        signal.event_id.store(event.map_or(0, EventId::raw), Ordering::Relaxed);
        signal.start_ticks.store(0, Ordering::Relaxed);
        signal.end_ticks.store(0, Ordering::Relaxed);
        signal.queue.store(0, Ordering::Relaxed);
        signal.kind.store(AMD_SIGNAL_KIND_USER.0 as i64, Ordering::Relaxed);
        signal.value.store(value, Ordering::Relaxed);
        signal.generation.fetch_add(1, Ordering::Relaxed);
        signal.life.store(ALIVE, Ordering::Release);
        signal
    }

    /// Creates the doorbell signal of a hardware queue: kind DOORBELL, `doorbell_address` where its value would be.
    pub(super) fn create_doorbell(doorbell_address: u64, queue: u64, ring: Arc<dyn Ring>) -> &'static Self {
        let signal = Self::create(doorbell_address as i64, Wake::Poll);
        signal.kind.store(AMD_SIGNAL_KIND_DOORBELL.0 as i64, Ordering::Relaxed);
        signal.queue.store(queue, Ordering::Relaxed);
        signal.connect(ring);
        signal
    }

    /// Lets stores through the API go to `ring` instead of the value, until [`disconnect`](Self::disconnect).
    pub(super) fn connect(&self, ring: Arc<dyn Ring>) {
        *self.doorbell.write().unwrap_or_else(PoisonError::into_inner) = Some(ring);
        self.is_doorbell.store(true, Ordering::Release);
    }

    /// Ends [`connect`](Self::connect).
    pub(super) fn disconnect(&self) {
        self.is_doorbell.store(false, Ordering::Release);
        *self.doorbell.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Where stores go if this is a doorbell.
    pub(super) fn doorbell(&self) -> Option<Arc<dyn Ring>> {
        if !self.is_doorbell.load(Ordering::Acquire) {
            return None;
        }
        self.doorbell.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The signal of a handle; `None` for 0, for a misaligned one and for a signal that was destroyed.
    ///
    /// # Safety
    /// `handle` is 0 or was returned by a create call of this runtime (it may be destroyed by now). This is the
    /// precondition of every HSA signal call; signal memory is never unmapped.
    pub(super) unsafe fn from_handle(handle: hsa_signal_t) -> Option<&'static Self> {
        let address = handle.handle as usize;
        if address == 0 || !address.is_multiple_of(align_of::<Self>()) {
            return None;
        }
        let pointer = std::ptr::with_exposed_provenance::<Self>(address);
        // SAFETY: by the precondition the address is that of a `Signal` in a leaked chunk, so it is aligned,
        // initialised and valid for ever; all fields are atomics or locks, so a shared reference is enough.
        let signal = unsafe { &*pointer };
        signal.is_alive().then_some(signal)
    }

    pub(super) fn handle(&'static self) -> hsa_signal_t {
        hsa_signal_t { handle: std::ptr::from_ref(self).expose_provenance() as u64 }
    }

    /// Ends the signal's life; a second time does nothing. Returns whether it was alive.
    pub(super) fn destroy(&'static self) -> bool {
        if self.life.compare_exchange(ALIVE, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        self.disconnect();
        self.kind.store(AMD_SIGNAL_KIND_INVALID.0 as i64, Ordering::Relaxed);
        if let Some(event) = EventId::from_raw(self.event_id.swap(0, Ordering::Relaxed)) {
            // Whoever waits on it finds it dead.
            event.raise();
            event.give_back();
        }
        POOL.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        true
    }

    pub(super) fn is_alive(&self) -> bool {
        self.life.load(Ordering::Acquire) == ALIVE
    }

    /// Number of this life.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(super) fn value(&self) -> &AtomicI64 {
        &self.value
    }

    pub(super) fn event(&self) -> Option<EventId> {
        EventId::from_raw(self.event_id.load(Ordering::Relaxed))
    }

    /// Wakes who waits. Call it after each change of the value.
    pub(super) fn notify(&self) {
        if let Some(event) = self.event() {
            event.raise();
        }
    }

    /// Start and end in device ticks, as the device wrote them; `None` before it did.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        let (start, end) = (self.start_ticks.load(Ordering::Acquire), self.end_ticks.load(Ordering::Acquire));
        (start != 0 || end != 0).then_some((start, end))
    }

    /// Writes start and end as a device does before it completes the signal.
    pub(super) fn set_times(&self, start: u64, end: u64) {
        self.start_ticks.store(start, Ordering::Relaxed);
        self.end_ticks.store(end, Ordering::Release);
    }

    fn recycled() -> &'static Self {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        pool.pop().unwrap_or_else(|| {
            let [first, rest @ ..] = Self::chunk();
            pool.extend(rest.iter().rev());
            first
        })
    }

    /// New signals, in memory that devices may write from now on.
    fn chunk() -> &'static [Self; CHUNK] {
        let chunk: &'static [Self; CHUNK] = Box::leak(Box::new(std::array::from_fn(|_| Self::blank())));
        let base = chunk.as_ptr().expose_provenance() as u64;
        SIGNAL_MEMORY.insert(Range { base, bytes: size_of_val(chunk) as u64, gpus: GpuSet::ALL });
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destroyed_handle_is_not_found_and_its_next_life_differs() {
        let first = Signal::create(7, Wake::Interrupt);
        let (handle, generation) = (first.handle(), first.generation());
        assert!(first.destroy());
        assert!(!first.destroy());
        // SAFETY: the handle came from `create`.
        assert!(unsafe { Signal::from_handle(handle) }.is_none());
        assert_eq!(first.generation(), generation);
    }
}
