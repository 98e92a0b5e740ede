//! The threads of all Wavescope crates: each is announced before it is created and after.
//!
//! Tools that watch threads (HPCToolkit, PAPI) must not take ours for the application's, and deadlock if one appears while
//! they are inside the library. So whoever needs a thread takes it from [`create`]; actors do. A [`ThreadNotice`] listens
//! from [`announce_threads`] on, and for good.
//!
//! It must not know what the threads do.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use wavescope_core::threads::{ThreadNotice, announce_threads, create};
//!
//! #[derive(Default)]
//! struct Log(Mutex<Vec<String>>);
//! impl ThreadNotice for Log {
//!     fn before(&self, name: &str) {
//!         self.0.lock().unwrap().push(format!("soon: {name}"));
//!     }
//!     fn after(&self, name: &str) {
//!         self.0.lock().unwrap().push(format!("made: {name}"));
//!     }
//! }
//!
//! let log = Arc::new(Log::default());
//! announce_threads(Arc::<Log>::clone(&log));
//! create("example", || ())?.join().unwrap();
//! assert_eq!(*log.0.lock().unwrap(), ["soon: example", "made: example"]);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::cell::Cell;
use std::sync::Arc;
// Read in forked children, where nothing may be locked.
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::sync::thread::{Builder, JoinHandle};

/// Is told of every thread that a Wavescope crate creates, on the thread that creates it.
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

fn newest() -> Option<&'static Listener> {
    // SAFETY: null, or leaked by `announce_threads`.
    unsafe { NEWEST.load(Ordering::Acquire).as_ref() }
}

fn tell(newest: Option<&'static Listener>, tell: impl Fn(&dyn ThreadNotice)) {
    // SAFETY: null, or leaked by `announce_threads`.
    let listeners = std::iter::successors(newest, |listener| unsafe { listener.older.as_ref() });
    listeners.for_each(|listener| tell(&*listener.notice));
}

thread_local! {
    static OURS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread was made by [`create`]: nobody but Wavescope waits for it.
pub fn is_ours() -> bool {
    OURS.get()
}

/// Creates a thread, with the listeners told before and after. Linux shows the first 15 bytes of its name.
///
/// # Errors
/// What the operating system said if it refused the thread.
pub fn create<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    // Who begins to listen in between hears of neither.
    let listeners = newest();
    tell(listeners, |notice| notice.before(name));
    let run = move || {
        OURS.set(true);
        run()
    };
    let created = Builder::new().name(name.to_owned()).spawn(run);
    tell(listeners, |notice| notice.after(name));
    created
}
