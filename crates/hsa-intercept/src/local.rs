//! Thread-locals that every thread of a model has for itself, too, and statics that every schedule has: loom runs all of them
//! on one thread of one process.

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

/// Declares statics: the language's, or under loom its own.
macro_rules! static_of_model {
    ($($(#[$doc:meta])* static $name:ident: $type:ty = $init:expr;)*) => {
        $($(#[$doc])* #[cfg(not(loom))] static $name: $type = $init;)*

        #[cfg(loom)]
        ::loom::lazy_static! {
            $($(#[$doc])* static ref $name: $type = $init;)*
        }
    };
}

pub(crate) use {static_of_model, thread_local_of_model};
