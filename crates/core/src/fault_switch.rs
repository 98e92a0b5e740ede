//! The switch behind the broken twins of loom models: a step of the product that a model takes wrongly.

/// Declares, for an enum of faults, `set` and `is`: a model sets the one that it wants, the step asks whether it is.
///
/// Only a build under `cfg(loom)` has `set`; in any other `is` is constant, and the step compiles to what is right. loom
/// runs all threads of a model on the thread that called it, so parallel tests do not disturb each other.
///
/// ```
/// mod fault {
///     /// A step that can be taken wrongly.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Fault {
///         /// Nobody is woken.
///         Silent,
///     }
///
///     wavescope_core::fault_switch!(Fault);
/// }
///
/// assert!(!fault::is(fault::Fault::Silent));
/// ```
#[macro_export]
macro_rules! fault_switch {
    ($fault:ty) => {
        #[cfg(loom)]
        ::std::thread_local! {
            static ACTIVE: ::std::cell::Cell<Option<$fault>> = const { ::std::cell::Cell::new(None) };
        }

        /// Breaks `fault` for the models that this thread runs from now on.
        #[cfg(loom)]
        pub fn set(fault: $fault) {
            ACTIVE.set(Some(fault));
        }

        #[cfg(loom)]
        pub(crate) fn is(fault: $fault) -> bool {
            ACTIVE.get() == Some(fault)
        }

        #[cfg(not(loom))]
        #[inline(always)]
        pub(crate) const fn is(_: $fault) -> bool {
            false
        }
    };
}
