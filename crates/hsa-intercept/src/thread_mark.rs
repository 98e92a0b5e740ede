//! Facts about the current thread: its number, and whether it is inside a write hook.

use wavescope_core::ThreadId;

use crate::process::generation;

#[cfg(not(loom))]
mod imp {
    use std::cell::Cell;

    thread_local! {
        pub(super) static DEPTH: Cell<u32> = const { Cell::new(0) };
        pub(super) static LOOKS: Cell<bool> = const { Cell::new(false) };
        /// Number and process.
        pub(super) static THREAD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
        /// For which thread this one works, if for another; 0 for one that is not known.
        pub(super) static OTHER: Cell<Option<u32>> = const { Cell::new(None) };
    }
}

#[cfg(loom)]
mod imp {
    use std::cell::Cell;

    loom::thread_local! {
        pub(super) static DEPTH: Cell<u32> = Cell::new(0);
        pub(super) static LOOKS: Cell<bool> = Cell::new(false);
        pub(super) static THREAD: Cell<(u32, u32)> = Cell::new((1, 0));
        pub(super) static OTHER: Cell<Option<u32>> = Cell::new(None);
    }
}

/// Marks the current thread as inside a hook until dropped.
#[derive(Debug)]
pub(crate) struct InsideHook(());

impl InsideHook {
    pub(crate) fn enter() -> Self {
        // A thread whose locals are gone is ending; it cannot nest.
        let _ = imp::DEPTH.try_with(|depth| depth.set(depth.get() + 1));
        Self(())
    }

    /// Whether the current thread is inside some hook.
    pub(crate) fn is_current() -> bool {
        imp::DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
    }
}

impl Drop for InsideHook {
    fn drop(&mut self) {
        let _ = imp::DEPTH.try_with(|depth| depth.set(depth.get() - 1));
    }
}

/// Marks the current thread as telling of what retired, until dropped.
#[derive(Debug)]
pub(crate) struct InsideLook(());

impl InsideLook {
    /// `None` if it does so already: a subscriber was told, and asks to be told.
    pub(crate) fn enter() -> Option<Self> {
        let first = imp::LOOKS.try_with(|looks| !looks.replace(true)).unwrap_or(false);
        first.then_some(Self(()))
    }

    /// Whether the current thread is telling of what retired.
    pub(crate) fn is_current() -> bool {
        imp::LOOKS.try_with(std::cell::Cell::get).unwrap_or(false)
    }
}

impl Drop for InsideLook {
    fn drop(&mut self) {
        let _ = imp::LOOKS.try_with(|looks| looks.set(false));
    }
}

/// A number that no thread has.
const INTERNAL: u32 = u32::MAX;

/// Says that the current thread is ours or the runtime's: what it submits, it submits for an application thread that is not
/// known.
pub(crate) fn mark_internal() {
    let _ = imp::THREAD.try_with(|thread| thread.set((INTERNAL, generation())));
}

/// Says for which thread the current one works, until dropped.
#[derive(Debug)]
pub(crate) struct WorkingFor {
    before: Option<u32>,
}

impl WorkingFor {
    /// For itself.
    pub(crate) fn itself() -> Self {
        Self::set(None)
    }

    /// For another, if known: only its number is, not what it does.
    pub(crate) fn other(thread: Option<ThreadId>) -> Self {
        Self::set(Some(thread.map_or(0, |thread| thread.0)))
    }

    fn set(other: Option<u32>) -> Self {
        Self { before: imp::OTHER.try_with(|place| place.replace(other)).unwrap_or(None) }
    }

    /// Whether the current thread works for another.
    pub(crate) fn is_other() -> bool {
        imp::OTHER.try_with(|other| other.get().is_some()).unwrap_or(false)
    }
}

impl Drop for WorkingFor {
    fn drop(&mut self) {
        let _ = imp::OTHER.try_with(|other| other.set(self.before));
    }
}

/// The kernel's number of the thread for which the current one works, mostly itself. `None` for threads of ours and of the
/// runtime, and where it is not known.
pub(crate) fn current_thread() -> Option<ThreadId> {
    match imp::OTHER.try_with(std::cell::Cell::get) {
        Ok(Some(other)) => Some(other).filter(|&number| number != 0).map(ThreadId),
        _ => own_thread(),
    }
}

/// The kernel's number of the current thread; asked once per thread, so the enqueue path makes no system call. `None` for
/// threads of ours and of the runtime.
pub(crate) fn own_thread() -> Option<ThreadId> {
    let number = imp::THREAD.try_with(|thread| {
        let (number, process) = thread.get();
        // The only thread of a forked child remembers its parent's.
        if number != 0 && process == generation() {
            return number;
        }
        let number = gettid();
        thread.set((number, generation()));
        number
    });
    number.ok().filter(|&number| number != INTERNAL).map(ThreadId)
}

fn gettid() -> u32 {
    // SAFETY: `gettid` takes no arguments and cannot fail.
    let number = unsafe { libc::gettid() };
    number.cast_unsigned()
}
