//! Identifiers as newtypes: an [`AgentId`] does not fit where a [`QueueId`] belongs.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, " {}"), self.0)
            }
        }
    };
}

id!(
    /// A GPU agent: its index among the GPUs of the topology, in node order, from 0.
    AgentId(u32), "agent"
);
id!(
    /// A queue that an application created, unique in the process and never reused.
    QueueId(u64), "queue"
);
id!(
    /// A context: what a client configures, starts and stops. Unique in the process.
    ContextId(u64), "context"
);
id!(
    /// A kernel dispatch, process-wide, the first is 1.
    DispatchId(u64), "dispatch"
);
id!(
    /// A code object loaded on an agent, unique in the process, the first is 1.
    CodeObjectId(u64), "code object"
);
id!(
    /// An operating-system thread (Linux thread id).
    ThreadId(u32), "thread"
);
id!(
    /// A subscriber's registration with an [`Interception`](crate::Interception).
    SubscriptionId(u64), "subscription"
);

/// Names one thing in flight: a slab index and the generation that the slot had when it was taken.
///
/// Callbacks and channels carry tokens, never pointers: a token that outlived its slot is recognised by its
/// generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Index of the slot.
    pub index: u32,
    /// How often the slot had been reused.
    pub generation: u32,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {}.{}", self.index, self.generation)
    }
}
