//! What goes wrong in this crate.

use std::path::PathBuf;

use crate::Conflict;

/// An error of the core crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The actor that should have answered has ended, or its thread panicked.
    #[error("actor {actor} is gone")]
    ActorGone {
        /// Name of the actor's thread.
        actor: &'static str,
    },
    /// The actor did not answer in the time allowed; it is still running.
    #[error("actor {actor} did not answer within {waited:?}")]
    ActorSilent {
        /// Name of the actor's thread.
        actor: &'static str,
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// The operating system refused a thread.
    #[error("no thread for actor {actor}")]
    Spawn {
        /// Name of the actor's thread.
        actor: &'static str,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// Not the name of a target that Wavescope knows.
    #[error("unknown gfx target `{name}`; known are {}", crate::GfxTarget::known_names())]
    UnknownTarget {
        /// The name as given.
        name: String,
    },
    /// A file of the topology could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A file of the topology is not what the driver writes.
    #[error("{}: line {line} (byte {offset}): {what}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Offset of the offending byte, from 0.
        offset: usize,
        /// What was found and what was expected.
        what: String,
    },
    /// A property that every node of this kind has is missing.
    #[error("{}: no property `{property}` in {length} bytes", path.display())]
    MissingProperty {
        /// Which file.
        path: PathBuf,
        /// The property's name.
        property: &'static str,
        /// Size of the file.
        length: usize,
    },
    /// Properties contradict each other.
    #[error("{}: {what}", path.display())]
    Inconsistent {
        /// Which file.
        path: PathBuf,
        /// The contradiction, with the values.
        what: String,
    },
    /// Another context holds what this one claims.
    #[error(transparent)]
    Conflict(#[from] Conflict),
}
