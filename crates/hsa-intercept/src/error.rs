//! What goes wrong between the application's queues and the services.

/// An error of interception.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of the runtime failed.
    #[error(transparent)]
    Hsa(#[from] wavescope_hsa::Error),
    /// The API table is of a major version that this crate does not know; it was left untouched.
    #[error("{table} table has major version {found}, known is {known}")]
    UnknownTable {
        /// Which of the tables.
        table: &'static str,
        /// Its `major_id`.
        found: u32,
        /// The version this crate was written for.
        known: u32,
    },
    /// The runtime is too old for an entry that interception needs.
    #[error("the runtime's API table has no {call}")]
    MissingEntry {
        /// Name of the entry.
        call: &'static str,
    },
    /// A null pointer where the runtime hands over its tables.
    #[error("the API table is null")]
    NoTable,
    /// The operating system refused the reaper its thread.
    #[error("no thread for the reaper")]
    NoThread(#[source] std::io::Error),
}
