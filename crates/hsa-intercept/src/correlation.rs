//! What connects a dispatch with the call that caused it.
//!
//! The **internal** id names the API call in progress on the submitting thread, as whoever intercepts that API says with
//! [`ApiCall::enter`]; a dispatch outside any call gets an id of its own. The **external** id is what the client pushed last
//! on that thread for its context ([`push_external`]). On a thread of the runtime, and for packets that another thread submitted,
//! neither is known.
//!
//! ```
//! use wavescope_core::ContextId;
//! use wavescope_hsa_intercept::{ApiCall, CorrelationIds, pop_external, push_external};
//!
//! let context = ContextId(1);
//! push_external(context, 77);
//! let call = ApiCall::enter();
//! let ids = CorrelationIds::of_current_thread(context);
//! assert_eq!((ids.internal, ids.external), (call.id(), 77));
//! assert_eq!(pop_external(context), Some(77));
//! ```

use std::cell::{Cell, RefCell};
// A number, and no synchronisation.
use std::sync::atomic::{AtomicU64, Ordering};

use wavescope_core::ContextId;

use crate::thread_mark::WorkingFor;

thread_local! {
    /// The call in progress, 0 for none.
    static CALL: Cell<u64> = const { Cell::new(0) };
    static EXTERNAL: RefCell<Vec<(ContextId, u64)>> = const { RefCell::new(Vec::new()) };
}

static LAST: AtomicU64 = AtomicU64::new(0);

/// The two ids of one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorrelationIds {
    /// The API call that caused it, or the dispatch itself. Unique in the process, the first is 1.
    pub internal: u64,
    /// What the client said; 0 for nothing.
    pub external: u64,
}

/// An API call in progress on the current thread, until dropped. Calls nest: the innermost counts.
#[derive(Debug)]
pub struct ApiCall {
    id: u64,
    outer: u64,
    // It names the state of the thread that entered.
    _here: std::marker::PhantomData<*const ()>,
}

impl ApiCall {
    /// Begins a call.
    pub fn enter() -> Self {
        let id = next();
        let outer = CALL.try_with(|call| call.replace(id)).unwrap_or(0);
        Self { id, outer, _here: std::marker::PhantomData }
    }

    /// Its internal correlation id.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for ApiCall {
    fn drop(&mut self) {
        let _ = CALL.try_with(|call| call.set(self.outer));
    }
}

impl CorrelationIds {
    /// The ids of what the current thread does next for `context`.
    pub fn of_current_thread(context: ContextId) -> Self {
        Self { internal: internal(), external: external(context) }
    }
}

/// Sets the external id of what the current thread dispatches for `context`, until [`pop_external`].
pub fn push_external(context: ContextId, id: u64) {
    let _ = EXTERNAL.try_with(|stack| stack.borrow_mut().push((context, id)));
}

/// Takes back the last id that was pushed for `context` on this thread, and returns it.
pub fn pop_external(context: ContextId) -> Option<u64> {
    let pop = |stack: &RefCell<Vec<(ContextId, u64)>>| {
        let mut stack = stack.borrow_mut();
        let index = stack.iter().rposition(|(of, _)| *of == context)?;
        Some(stack.remove(index).1)
    };
    EXTERNAL.try_with(pop).ok().flatten()
}

/// The call in progress, or a new id.
pub(crate) fn internal() -> u64 {
    if WorkingFor::is_other() {
        return next();
    }
    let call = CALL.try_with(Cell::get).unwrap_or(0);
    if call == 0 { next() } else { call }
}

/// What was pushed last for `context`.
pub(crate) fn external(context: ContextId) -> u64 {
    if WorkingFor::is_other() {
        return 0;
    }
    let last = |stack: &RefCell<Vec<(ContextId, u64)>>| {
        let stack = stack.borrow();
        stack.iter().rev().find(|(of, _)| *of == context).map_or(0, |(_, id)| *id)
    };
    EXTERNAL.try_with(last).unwrap_or(0)
}

fn next() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn external_ids_are_a_stack_per_context_and_thread() {
        let (one, two) = (ContextId(1), ContextId(2));
        assert_eq!((external(one), pop_external(one)), (0, None));
        push_external(one, 10);
        push_external(two, 20);
        push_external(one, 11);
        assert_eq!((external(one), external(two)), (11, 20));
        std::thread::spawn(move || assert_eq!(external(one), 0)).join().unwrap();
        assert_eq!((pop_external(one), external(one)), (Some(11), 10));
        assert_eq!((pop_external(two), external(two), external(one)), (Some(20), 0, 10));
        assert_eq!(pop_external(one), Some(10));
    }

    #[test]
    fn the_innermost_call_gives_the_internal_id() {
        let outer = ApiCall::enter();
        {
            let inner = ApiCall::enter();
            assert!(inner.id() > outer.id());
            assert_eq!((internal(), internal()), (inner.id(), inner.id()));
        }
        assert_eq!(internal(), outer.id());
        drop(outer);
        assert_ne!(internal(), internal(), "outside of calls each dispatch has its own");
    }
}
