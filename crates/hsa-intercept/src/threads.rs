//! The threads of this crate: each is announced before it is created and after.
//!
//! Tools that watch threads (HPCToolkit, PAPI) must not take ours for the application's, and deadlock if one appears while
//! they are inside the library.

use std::sync::Arc;
// Read in forked children, where nothing may be locked.
use std::sync::atomic::{AtomicPtr, Ordering};

use wavescope_core::sync::thread::{self, JoinHandle};

use crate::Error;

/// Is told of every thread that this crate creates, on the thread that creates it.
pub trait ThreadNotice: Send + Sync {
    /// A thread of this name is about to be created.
    fn before(&self, name: &str);

    /// It was created, or could not be.
    fn after(&self, name: &str);
}

struct Listener {
    notice: Arc<dyn ThreadNotice>,
    older: *const Self,
}

/// Newest first, never freed.
static NEWEST: AtomicPtr<Listener> = AtomicPtr::new(std::ptr::null_mut());

/// Tells `notice` of every thread that is created from now on.
pub fn announce_threads(notice: Arc<dyn ThreadNotice>) {
    let listener = Box::into_raw(Box::new(Listener { notice, older: std::ptr::null() }));
    let mut older = NEWEST.load(Ordering::Acquire);
    loop {
        // SAFETY: made above, and nobody else sees it before the exchange.
        unsafe { (*listener).older = older };
        match NEWEST.compare_exchange(older, listener, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => older = now,
        }
    }
}

fn listeners() -> impl Iterator<Item = &'static Listener> {
    // SAFETY: null, or leaked by `announce_threads`; likewise what it points to.
    let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: likewise.
    std::iter::successors(newest, |listener| unsafe { listener.older.as_ref() })
}

/// Creates a thread.
///
/// # Errors
/// [`Error::NoThread`].
pub(crate) fn create(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    listeners().for_each(|listener| listener.notice.before(name));
    let created = thread::Builder::new().name(name.to_owned()).spawn(run);
    listeners().for_each(|listener| listener.notice.after(name));
    created.map_err(Error::NoThread)
}
