//! Packet programs by the installed library, libhsa-amd-aqlprofile64.
//!
//! The library is used only where the real HSA runtime is loaded and initialised: without it, its trace functions
//! abort the process. What it would crash on is refused before, by making the built-in program first: it knows every
//! limit, and its samples and layout describe the library's output as well, which is the same to the byte.
//!
//! Unsafe code lives in [`library`] and [`session`] only.

mod counters;
mod library;
mod marker;
mod session;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::counters::NativeCounters;
use self::library::Library;
use self::marker::NativeMarker;
use self::trace::NativeTrace;
use crate::agent::AgentShape;
use crate::counters::BuiltinCounters;
use crate::error::Error;
use crate::event::Event;
use crate::memory::Memory;
use crate::program::{CounterProgram, MarkerInstance, PacketPrograms, TraceProgram};
use crate::trace::{BuiltinTrace, CodeObjectMarker, TraceConfig};

/// Makes packet programs through the installed library.
///
/// The library shares state between agents of one process: builders between agents of the same gfx name and compute units,
/// and block tables between chips of a generation. Where different GPUs of one kind are profiled together, the
/// built-in programs are the right ones.
///
/// Buffers with host access must be mapped in this process at the addresses that [`Memory`] gives out: the library
/// writes and reads them itself.
#[derive(Debug)]
pub struct Native {
    library: Arc<Library>,
}

impl Native {
    /// The library's name.
    pub const LIBRARY: &'static str = library::SONAME;

    /// Loads the library, if the HSA runtime of this process is loaded and initialised.
    ///
    /// # Errors
    /// [`Error::RuntimeNotInitialised`] before anything is loaded; [`Error::LibraryMissing`] with what was
    /// searched; [`Error::LibraryTooOld`] with the version found.
    pub fn open() -> Result<Self, Error> {
        library::check_runtime()?;
        Ok(Self { library: Arc::new(Library::load(None)?) })
    }

    /// As [`Native::open`], with the library at `path`.
    ///
    /// # Errors
    /// As [`Native::open`].
    pub fn open_at(path: &Path) -> Result<Self, Error> {
        library::check_runtime()?;
        Ok(Self { library: Arc::new(Library::load(Some(path))?) })
    }

    /// The version of the library at `path` (or of the one that the system finds), without using it.
    ///
    /// # Errors
    /// [`Error::LibraryMissing`]; [`Error::LibraryTooOld`].
    pub fn version_of(path: Option<&Path>) -> Result<[u32; 3], Error> {
        Ok(Library::load(path)?.version())
    }

    /// The library's version.
    pub fn version(&self) -> [u32; 3] {
        self.library.version()
    }

    /// Where the library was loaded from.
    pub fn path(&self) -> PathBuf {
        self.library.path().to_owned()
    }
}

impl PacketPrograms for Native {
    fn origin(&self) -> String {
        let [major, minor, patch] = self.version();
        format!("{} {major}.{minor}.{patch} from {}", Self::LIBRARY, self.library.path().display())
    }

    fn counters(&self, agent: &AgentShape, events: &[Event]) -> Result<Arc<dyn CounterProgram>, Error> {
        let builtin = BuiltinCounters::new(agent, events)?;
        Ok(Arc::new(NativeCounters::new(&self.library, agent, events, builtin)?))
    }

    fn trace(&self, agent: &AgentShape, config: &TraceConfig) -> Result<Arc<dyn TraceProgram>, Error> {
        let builtin = BuiltinTrace::new(agent, config)?;
        Ok(Arc::new(NativeTrace::new(&self.library, agent, config, builtin)?))
    }

    fn marker(
        &self,
        agent: &AgentShape,
        marker: &CodeObjectMarker,
        memory: &Arc<dyn Memory>,
    ) -> Result<Box<dyn MarkerInstance>, Error> {
        agent.chip()?;
        Ok(Box::new(NativeMarker::new(&self.library, agent, marker, memory)?))
    }
}

#[cfg(test)]
mod tests;
