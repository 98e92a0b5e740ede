//! What goes wrong between the application's queues and the services.

use std::path::PathBuf;
use std::time::Duration;

use wavescope_core::{AgentId, DispatchId, InterceptionError, QueueId, SubscriptionId};

/// An error of interception.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of the runtime failed.
    #[error(transparent)]
    Hsa(#[from] wavescope_hsa::Error),
    /// The runtime is too old for an entry that interception needs.
    #[error("the runtime's API table has no {call}")]
    MissingEntry {
        /// Name of the entry.
        call: &'static str,
    },
    /// Another copy of this library intercepts the runtime already: everything would be measured twice.
    #[error("the runtime is intercepted already, by {}", path.display())]
    InstalledElsewhere {
        /// The object that contains the other copy.
        path: PathBuf,
    },
    /// There are more queues than can be told apart.
    #[error("no place for another queue")]
    TooManyQueues,
    /// The operating system refused a thread.
    #[error("no thread for interception")]
    NoThread(#[source] std::io::Error),
    /// A write hook is still inside a callback of a subscriber.
    #[error("a callback for {queue} on {agent} has not returned after {waited:?}")]
    CallbackBusy {
        /// The queue's agent.
        agent: AgentId,
        /// Whose packets it is called for.
        queue: QueueId,
        /// How long was waited.
        waited: Duration,
    },
    /// Dispatches of a subscription have not retired. They stay instrumented and their memory is kept.
    #[error("{in_flight} dispatches of {subscription} have not retired after {waited:?}{}", which(*oldest))]
    NotDrained {
        /// Whose dispatches.
        subscription: SubscriptionId,
        /// How many are still in flight.
        in_flight: usize,
        /// The oldest of them, where one was found, and its queue.
        oldest: Option<(DispatchId, QueueId)>,
        /// How long was waited.
        waited: Duration,
    },
    /// Packets of ours are still in flight on a queue.
    #[error("{queue} on {agent} still has packets of interception in flight after {waited:?}")]
    QueueBusy {
        /// The queue's agent.
        agent: AgentId,
        /// The queue.
        queue: QueueId,
        /// How long was waited.
        waited: Duration,
    },
    /// A thread of ours did not end in time; it goes on and ends when it can.
    #[error("thread {thread} did not end in time")]
    ThreadBusy {
        /// Its name.
        thread: &'static str,
    },
    /// The subscription is not there any more, or interception was shut down.
    #[error(transparent)]
    Interception(#[from] InterceptionError),
}

fn which(dispatch: Option<(DispatchId, QueueId)>) -> String {
    dispatch.map(|(dispatch, queue)| format!("; the oldest is {dispatch} on {queue}")).unwrap_or_default()
}

impl Error {
    /// As the services see it.
    pub(crate) fn for_service(self, subscription: SubscriptionId) -> InterceptionError {
        let timed_out =
            |in_flight, timeout| InterceptionError::DrainTimedOut { subscription, in_flight, timeout };
        match self {
            Self::Interception(error) => error,
            Self::NotDrained { in_flight, waited, .. } => timed_out(in_flight, waited),
            Self::CallbackBusy { agent, queue, waited } => {
                InterceptionError::CallbackBusy { subscription, agent, queue, waited }
            }
            Self::QueueBusy { waited, .. } => timed_out(1, waited),
            _ => InterceptionError::ShutDown,
        }
    }
}
