//! What goes wrong between the application's queues and the services.

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
    /// There are more queues than can be told apart.
    #[error("no place for another queue")]
    TooManyQueues,
    /// The operating system refused the reaper its thread.
    #[error("no thread for the reaper")]
    NoThread(#[source] std::io::Error),
}
