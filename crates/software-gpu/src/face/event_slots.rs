//! The interrupt events of the process: who sleeps until a signal changes, and how it is woken.
//!
//! A signal with an event names one of [`EVENT_LIMIT`] slots. Slots are never freed, so an event that arrives after
//! its signal was destroyed wakes nobody or wakes somebody for nothing, and does no harm.
//!
//! *No lost wake-up.* A waiter enters the slot, fences, then looks at the value; a changer changes the value,
//! fences, then looks at the slot. Of the two looks at least one sees the other's write.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{self, Thread};

/// Signal events that the kernel driver gives one process (`KFD_SIGNAL_EVENT_LIMIT`, kfd_priv.h). The driver never
/// hands out slot 0 here: a signal's event id 0 means "no event".
pub(super) const EVENT_LIMIT: usize = 4096;

static SLOTS: LazyLock<Slots> = LazyLock::new(Slots::new);

struct Slots {
    slots: Box<[Slot]>,
    /// Where the device leaves the event id before it raises the event; kept apart, since devices may write it.
    mailboxes: Box<[AtomicU64]>,
    free: Mutex<Vec<EventId>>,
}

#[derive(Default)]
struct Slot {
    sleeping: AtomicU32,
    threads: Mutex<Vec<Thread>>,
}

/// Address and length of all mailboxes.
pub(super) fn mailboxes() -> (u64, u64) {
    (SLOTS.mailboxes.as_ptr().expose_provenance() as u64, size_of_val(&*SLOTS.mailboxes) as u64)
}

/// A slot, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId(u32);

impl Slots {
    fn new() -> Self {
        let ids = (1..EVENT_LIMIT as u32).rev().map(EventId).collect();
        Self {
            slots: (0..EVENT_LIMIT).map(|_| Slot::default()).collect(),
            mailboxes: (0..EVENT_LIMIT).map(|_| AtomicU64::new(0)).collect(),
            free: Mutex::new(ids),
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<EventId>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventId {
    /// Takes a slot; `None` when all are taken: the signal then works, but waits on it poll.
    pub(super) fn take() -> Option<Self> {
        SLOTS.free().pop()
    }

    /// Gives the slot back.
    pub(super) fn give_back(self) {
        SLOTS.free().push(self);
    }

    /// The id that a signal or an event message carries; `None` for 0 and for numbers that are no slot.
    pub(super) fn from_raw(id: u32) -> Option<Self> {
        (id != 0 && (id as usize) < EVENT_LIMIT).then_some(Self(id))
    }

    pub(super) fn raw(self) -> u32 {
        self.0
    }

    /// Address of the slot's mailbox; valid for ever.
    pub(super) fn mailbox(self) -> u64 {
        std::ptr::from_ref(&SLOTS.mailboxes[self.0 as usize]).expose_provenance() as u64
    }

    /// Wakes every thread in the slot. Call it after the change of the value.
    pub(super) fn raise(self) {
        fence(Ordering::SeqCst);
        let slot = self.slot();
        if slot.sleeping.load(Ordering::Relaxed) != 0 {
            slot.threads.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Thread::unpark);
        }
    }

    /// Enters the current thread: until the guard is dropped, [`raise`](Self::raise) unparks it.
    pub(super) fn enter(self) -> Entered {
        let slot = self.slot();
        slot.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread::current());
        slot.sleeping.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Entered { event: self, thread: thread::current() }
    }

    fn slot(self) -> &'static Slot {
        &SLOTS.slots[self.0 as usize]
    }
}

/// A thread's place in a slot.
#[derive(Debug)]
pub(super) struct Entered {
    event: EventId,
    thread: Thread,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let slot = self.event.slot();
        let mut threads = slot.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = threads.iter().position(|thread| thread.id() == self.thread.id()) {
            threads.swap_remove(place);
            slot.sleeping.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
