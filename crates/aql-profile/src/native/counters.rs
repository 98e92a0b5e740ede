//! Counter programs of the library.

use std::ops::ControlFlow;
use std::sync::Arc;

use wavescope_core::AqlPacket;

use super::library::Library;
use super::session::{Session, ValueSink};
use crate::agent::AgentShape;
use crate::counters::{BuiltinCounters, Sample, Warning};
use crate::error::Error;
use crate::event::Event;
use crate::memory::Memory;
use crate::program::{CounterInstance, CounterProgram};
use crate::status::Status;

/// A counter set: the request, and the built-in program that checked and describes it.
pub(super) struct NativeCounters(Arc<Request>);

struct Request {
    library: Arc<Library>,
    agent: AgentShape,
    events: Vec<Event>,
    builtin: BuiltinCounters,
}

impl NativeCounters {
    /// Keeps the request; the library is asked for each instance.
    pub(super) fn new(
        library: &Arc<Library>,
        agent: &AgentShape,
        events: &[Event],
        builtin: BuiltinCounters,
    ) -> Result<Self, Error> {
        let (library, agent, events) = (Arc::clone(library), agent.clone(), events.to_vec());
        Ok(Self(Arc::new(Request { library, agent, events, builtin })))
    }
}

impl CounterProgram for NativeCounters {
    fn events(&self) -> &[Event] {
        self.0.builtin.events()
    }

    fn samples(&self) -> &[Sample] {
        self.0.builtin.samples()
    }

    fn warnings(&self) -> &[Warning] {
        self.0.builtin.warnings()
    }

    fn output_bytes(&self) -> u64 {
        self.0.builtin.output_bytes()
    }

    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn CounterInstance>, Error> {
        Ok(Box::new(NativeCounterInstance::new(&self.0, memory)?))
    }
}

struct NativeCounterInstance {
    request: Arc<Request>,
    session: Arc<Session>,
    handle: u64,
    packets: [AqlPacket; 3],
}

impl NativeCounterInstance {
    fn new(request: &Arc<Request>, memory: &Arc<dyn Memory>) -> Result<Self, Error> {
        let session = Session::new(memory);
        match request.library.create_counters(&request.agent, &request.events, &session) {
            Ok((handle, packets)) => Ok(Self { request: Arc::clone(request), session, handle, packets }),
            Err(error) => Err(session.abandon(error)),
        }
    }
}

impl CounterInstance for NativeCounterInstance {
    fn start(&self) -> AqlPacket {
        self.packets[0]
    }

    fn read(&self) -> AqlPacket {
        self.packets[1]
    }

    fn stop(&self) -> AqlPacket {
        self.packets[2]
    }

    fn output(&self) -> (u64, u64) {
        self.session.allocation(0)
    }

    fn clear(&self) {
        let (address, bytes) = self.output();
        self.session.memory().store(address, &vec![0; bytes as usize]);
    }

    fn iterate(&self, each: &mut dyn FnMut(&Sample, u64) -> ControlFlow<Status>) -> Result<(), Error> {
        let mut samples = self.request.builtin.samples().iter();
        let mut take = |counter_id, value| match samples.next() {
            Some(sample) if sample.counter_id == counter_id => match each(sample, value) {
                ControlFlow::Continue(()) => Status::SUCCESS,
                // Success would not end the library's loop.
                ControlFlow::Break(Status::SUCCESS) => Status::INFO_BREAK,
                ControlFlow::Break(status) => status,
            },
            // The library counts otherwise than we do: no value can be trusted.
            _ => Status::ERROR,
        };
        let status = self.request.library.iterate_counters(self.handle, &mut ValueSink(&mut take));
        if status.is_success() { Ok(()) } else { Err(Error::Callback { status }) }
    }

    fn sibling(&self) -> Result<Box<dyn CounterInstance>, Error> {
        Ok(Box::new(Self::new(&self.request, self.session.memory())?))
    }
}

impl Drop for NativeCounterInstance {
    fn drop(&mut self) {
        self.request.library.delete_counters(self.handle);
    }
}
