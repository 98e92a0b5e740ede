//! Code-object markers of the library.

use std::sync::Arc;

use wavescope_core::AqlPacket;

use super::library::Library;
use super::session::Session;
use super::trace::runtime_agent;
use crate::agent::AgentShape;
use crate::error::Error;
use crate::memory::{Buffer, Memory};
use crate::program::MarkerInstance;
use crate::trace::CodeObjectMarker;

/// A marker; dropping it gives its memory back.
pub(super) struct NativeMarker {
    library: Arc<Library>,
    /// The library's callbacks point to it until the marker is deleted.
    _session: Arc<Session>,
    handle: u64,
    packet: AqlPacket,
}

impl NativeMarker {
    /// Asks the library for the marker.
    pub(super) fn new(
        library: &Arc<Library>,
        agent: &AgentShape,
        marker: &CodeObjectMarker,
        memory: &Arc<dyn Memory>,
    ) -> Result<Self, Error> {
        let hsa_agent = runtime_agent(agent)?;
        let session = Session::new(memory);
        match library.create_marker(hsa_agent, marker, &session) {
            Ok((handle, packet)) => {
                Ok(Self { library: Arc::clone(library), _session: session, handle, packet })
            }
            Err(error) => Err(session.abandon(error)),
        }
    }
}

impl MarkerInstance for NativeMarker {
    fn packet(&self) -> AqlPacket {
        self.packet
    }

    fn buffer(&self) -> Option<&Buffer> {
        None
    }
}

impl Drop for NativeMarker {
    fn drop(&mut self) {
        self.library.delete_trace(self.handle);
    }
}
