//! Whether this is still the process that something was made in.
//!
//! A forked child has a copy of everything but the threads: the reaper is not there, and any lock may be held by a thread
//! that is not there either. So in a child everything of ours from before the fork is **inert**: entries pass calls on,
//! hooks pass packets on, services are refused, and nothing is locked, joined or freed. What the child installs itself
//! works.
//!
//! A child made by a bare `clone` system call is not noticed; `vfork` and `posix_spawn` run nothing of ours.

#[cfg(not(loom))]
mod imp {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// How many forks lie between the first process and this one.
    static GENERATION: AtomicU32 = AtomicU32::new(0);
    static AT_FORK: Once = Once::new();

    extern "C" fn in_child() {
        // All that is allowed here: other threads may have been anywhere.
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }

    pub(super) fn watch_forks() {
        AT_FORK.call_once(|| {
            // SAFETY: the function only changes an atomic, which a forked child may do.
            let status = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            if status != 0 {
                tracing::warn!(status, "forked children will not be noticed");
            }
        });
    }
}

#[cfg(loom)]
mod imp {
    pub(crate) fn generation() -> u32 {
        0
    }

    pub(super) fn watch_forks() {}
}

pub(crate) use imp::generation;

/// The process that something was made in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin(u32);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        imp::watch_forks();
        Self(generation())
    }

    /// Whether that was an ancestor of this process.
    pub(crate) fn is_parent(self) -> bool {
        self.0 != generation()
    }
}
