//! Thread-locals that every thread of a model has for itself, too: loom runs all of them on one thread.

/// Declares thread-locals: the standard library's, or under loom its own.
macro_rules! thread_local_of_model {
    ($($(#[$doc:meta])* static $name:ident: $type:ty = $init:expr;)*) => {
        #[cfg(not(loom))]
        ::std::thread_local! {
            $($(#[$doc])* static $name: $type = const { $init };)*
        }

        #[cfg(loom)]
        ::loom::thread_local! {
            $($(#[$doc])* static $name: $type = $init;)*
        }
    };
}

pub(crate) use thread_local_of_model;
