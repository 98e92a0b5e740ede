//! Doors for models into parts that no user of this crate sees. Absent from any other build.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::thread::JoinHandle;
use wavescope_core::sync::{Deadline, Mutex};

use crate::front::Closed;
use crate::front::pins::Retired;
use crate::front::table::Table;
use crate::front::turn::EndableTurn;
use crate::snapshot::{HookWord, SnapshotCell};
use crate::{Engine, Error, gate, threads};

/// Creates a thread of ours.
///
/// # Errors
/// [`Error::NoThread`].
pub fn create_thread(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    threads::create("wavescope-model", run)
}

/// The gate before a runtime.
#[derive(Debug, Default)]
pub struct Gate(gate::Gate);

impl Gate {
    /// Leave to call the runtime, until dropped; `None` if it is gone.
    pub fn enter(&self) -> Option<impl Sized> {
        self.0.enter()
    }

    /// Lets nobody in until [`open`](Self::open).
    pub fn shut(&self) {
        self.0.shut();
    }

    /// Waits until those who were let in have left; `false` if `timeout` passed before.
    pub fn wait_empty(&self, timeout: Duration) -> bool {
        self.0.wait_empty(Deadline::after(timeout))
    }

    /// Takes back one [`shut`](Self::shut).
    pub fn open(&self) {
        self.0.open();
    }

    /// The runtime is gone.
    pub fn set_gone(&self) {
        self.0.set_gone();
    }
}

/// Until dropped, the current thread was called by the application.
pub fn called_by_application() -> impl Sized {
    gate::ForApplication::enter()
}

/// Until dropped, the current thread is inside `hsa_shut_down`.
pub fn inside_shut_down() -> impl Sized {
    gate::GoingDown::enter()
}

/// Frees what an engine keeps for queues that are gone, and the bell of its reaper if none is measured.
pub fn let_go(engine: &Engine, timeout: Duration) {
    engine.let_go(Deadline::after(timeout));
}

/// What finds fronts by address, and keeps those that were taken out while somebody uses them.
pub struct Shelf<T> {
    table: Table<T>,
    retired: Mutex<Retired<Arc<T>>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { table: Table::new(), retired: Mutex::new(Retired::default()) }
    }
}

impl<T> Shelf<T> {
    /// Adds an item, which stays until [`remove`](Self::remove); `false` if there is no place.
    pub fn add(&self, key: usize, item: &Arc<T>) -> bool {
        self.table.insert(key, Arc::as_ptr(item))
    }

    /// The item with this key, which is not freed while it is held.
    pub fn find(&self, key: usize) -> Option<impl Deref<Target = T>> {
        self.table.find(key)
    }

    /// Takes an item out.
    pub fn remove(&self, key: usize, item: Arc<T>) {
        self.retired.lock().retire(item, |_| self.table.remove(key));
    }

    /// What was taken out and nobody uses any more: to be freed.
    pub fn sweep(&self) -> Vec<Arc<T>> {
        self.retired.lock().sweep()
    }
}

/// Whose turn it is to read a front; at the end there is an `A` to do.
pub struct Turn<A>(EndableTurn<A>);

impl<A> Default for Turn<A> {
    fn default() -> Self {
        Self(EndableTurn::default())
    }
}

impl<A> Turn<A> {
    /// Makes the current thread the reader; `false` if there is one.
    pub fn take(&self) -> bool {
        self.0.take()
    }

    /// Whether nothing more goes to the hardware queue.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// The reader leaves. Returns what was left to it.
    pub fn leave(&self) -> Option<A> {
        self.0.leave()
    }

    /// Closes the front. Whether the caller destroys the hardware queue; else `act` is left to the reader, if that is another
    /// that had not left when `timeout` passed.
    pub fn end(&self, timeout: Duration, act: A) -> bool {
        self.0.end(Deadline::after(timeout), |_| act) != Closed::LeftToReader
    }
}

/// A snapshot that one hook reads.
pub struct Snapshots<T> {
    cell: SnapshotCell<T>,
    word: HookWord,
}

impl<T> Snapshots<T> {
    /// A first snapshot.
    pub fn new(first: Arc<T>) -> Self {
        let snapshots = Self { cell: SnapshotCell::empty(), word: HookWord::default() };
        snapshots.swap(Some(first));
        snapshots
    }

    /// The snapshot, for the hook.
    pub fn read(&self) -> Option<impl Deref<Target = T>> {
        self.cell.read(&self.word)
    }

    /// Replaces the snapshot, and waits until the hook does not use the old one.
    pub fn swap(&self, new: Option<Arc<T>>) {
        let waited = self.cell.swap(new).wait([&self.word], |word| *word, Deadline::after(Duration::MAX));
        debug_assert!(waited.is_ok(), "nothing ends that wait");
    }
}
