//! Trace programs of the library.

use std::sync::Arc;

use wavescope_core::AqlPacket;

use super::library::{Library, SONAME};
use super::session::{Session, TraceSink};
use crate::agent::AgentShape;
use crate::error::Error;
use crate::memory::Memory;
use crate::program::{TraceInstance, TraceProgram};
use crate::status::Status;
use crate::trace::{
    BufferPackets, BufferStatus, BuiltinTrace, TraceConfig, TraceLayout, TraceParameter, TraceReadback,
    read_control,
};

/// A trace: the request, and the built-in program that checked and describes it.
pub(super) struct NativeTrace(Arc<Request>);

struct Request {
    library: Arc<Library>,
    hsa_agent: u64,
    parameters: Vec<TraceParameter>,
    builtin: BuiltinTrace,
}

/// The runtime's handle of an agent, without which the library cannot trace.
pub(super) fn runtime_agent(agent: &AgentShape) -> Result<u64, Error> {
    let reason = || format!("{} was not given by it: its handle is not known", agent.gfxip);
    agent.hsa_agent.ok_or_else(|| Error::RuntimeNotInitialised { library: SONAME, reason: reason() })
}

impl NativeTrace {
    /// Keeps the request; the library is asked for each instance.
    pub(super) fn new(
        library: &Arc<Library>,
        agent: &AgentShape,
        config: &TraceConfig,
        builtin: BuiltinTrace,
    ) -> Result<Self, Error> {
        if config.buffers > 1 {
            // The version that is bound has no such parameter.
            let mask = builtin.layout().selected().fold(0, |mask, se| mask | 1 << se);
            return Err(Error::TraceBuffers { buffers: config.buffers, mask });
        }
        let (library, parameters) = (Arc::clone(library), config.parameters.clone());
        Ok(Self(Arc::new(Request { library, hsa_agent: runtime_agent(agent)?, parameters, builtin })))
    }
}

impl TraceProgram for NativeTrace {
    fn layout(&self) -> &TraceLayout {
        self.0.builtin.layout()
    }

    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn TraceInstance>, Error> {
        let request = Arc::clone(&self.0);
        let session = Session::new(memory);
        match request.library.create_trace(request.hsa_agent, &request.parameters, &session) {
            Ok((handle, packets)) => Ok(Box::new(NativeTraceInstance { request, session, handle, packets })),
            Err(error) => Err(session.abandon(error)),
        }
    }
}

struct NativeTraceInstance {
    request: Arc<Request>,
    session: Arc<Session>,
    handle: u64,
    packets: [AqlPacket; 2],
}

impl TraceInstance for NativeTraceInstance {
    fn start(&self) -> AqlPacket {
        self.packets[0]
    }

    fn stop(&self) -> AqlPacket {
        self.packets[1]
    }

    fn control(&self) -> (u64, u64) {
        self.session.allocation(0)
    }

    fn data(&self) -> Vec<(u64, u64)> {
        vec![self.session.allocation(1)]
    }

    fn readback(&self) -> TraceReadback {
        let (address, bytes) = self.control();
        let mut control = vec![0; bytes as usize];
        self.session.memory().load(address, &mut control);
        read_control(self.request.builtin.layout(), &control, self.session.allocation(1).0)
    }

    fn iterate(&self, each: &mut dyn FnMut(u32, &[u8])) -> Status {
        self.request.library.iterate_trace(self.handle, &mut TraceSink(each))
    }

    fn buffer_packets(&mut self, se: u32) -> Result<BufferPackets, Error> {
        Err(Error::NoBufferRing { se })
    }

    fn buffer_status(&mut self, se: u32) -> Result<BufferStatus, Error> {
        Err(Error::NoBufferRing { se })
    }
}

impl Drop for NativeTraceInstance {
    fn drop(&mut self) {
        self.request.library.delete_trace(self.handle);
    }
}
