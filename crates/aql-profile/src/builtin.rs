//! Packet programs by our own packets: no other library is used.

use std::sync::Arc;

use crate::agent::AgentShape;
use crate::counters::BuiltinCounters;
use crate::error::Error;
use crate::event::Event;
use crate::memory::Memory;
use crate::program::{CounterProgram, MarkerInstance, PacketPrograms, TraceProgram};
use crate::trace::{BuiltinMarker, BuiltinTrace, CodeObjectMarker, TraceConfig};

/// Makes packet programs on `wavescope-pm4`. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtin;

impl PacketPrograms for Builtin {
    fn origin(&self) -> String {
        "built in".to_owned()
    }

    fn counters(&self, agent: &AgentShape, events: &[Event]) -> Result<Arc<dyn CounterProgram>, Error> {
        Ok(Arc::new(BuiltinCounters::new(agent, events)?))
    }

    fn trace(&self, agent: &AgentShape, config: &TraceConfig) -> Result<Arc<dyn TraceProgram>, Error> {
        Ok(Arc::new(BuiltinTrace::new(agent, config)?))
    }

    fn marker(
        &self,
        agent: &AgentShape,
        marker: &CodeObjectMarker,
        memory: &Arc<dyn Memory>,
    ) -> Result<Box<dyn MarkerInstance>, Error> {
        Ok(Box::new(BuiltinMarker::new(agent, marker, memory)?))
    }
}
