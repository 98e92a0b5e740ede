//! Counting and tracing set up as a profiler would.

use std::sync::Arc;

use wavescope_aql_profile::{AgentShape, Builtin, TraceConfig, TraceParameter};
use wavescope_att_resources::{
    AgentOwner, Decide, Delivery as TraceDelivery, DispatchTrace, DispatchTraceSetup, HsaSlots, TracedAgent,
};
use wavescope_core::{Agent, ContextId, DispatchCounters, Overflow, Records, TraceChunk, record_stream};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::ProgramMemory;

use crate::Bed;

/// Room for every record of a test: nothing may be dropped unseen.
const STREAM: usize = 1 << 16;

/// A counting context and what it delivers.
pub struct Counted {
    /// The service.
    pub service: DispatchCounting,
    /// Its records.
    pub records: Records<DispatchCounters>,
}

/// Counts `counters` for every dispatch on `agent`.
pub fn count(bed: &Bed, context: u64, agent: &Agent, counters: &[&str]) -> Counted {
    let memory = Arc::new(ProgramMemory::new(bed.interceptor.hsa().clone(), agent.id));
    let config = CounterConfig::new(agent, counters, &Builtin, memory, PoolSize::default());
    let config = config.expect("counters that the agent has");
    let (sink, records) = record_stream(STREAM, Overflow::DropNewest);
    let service = DispatchCounting::new(Setup {
        context: ContextId(context),
        agents: vec![agent.id],
        interception: Arc::clone(&bed.interceptor) as _,
        claims: Arc::clone(&bed.claims),
        choose: Arc::new(move |_| Choice { config: Some(Arc::clone(&config)), user_data: 0 }),
        delivery: Delivery::Stream(sink),
    });
    Counted { service: service.expect("threads"), records }
}

/// A tracing context and what it delivers.
pub struct Traces {
    /// The service.
    pub service: DispatchTrace,
    /// Its chunks.
    pub chunks: Records<TraceChunk>,
}

/// What a context traces, besides the dispatches that its callback chooses.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// The context.
    pub context: u64,
    /// Bytes of its trace buffer.
    pub buffer_bytes: u64,
    /// Shader engines.
    pub se_mask: u32,
    /// Compute unit in detail.
    pub target_cu: u32,
}

/// Traces the dispatches on `agent` that `decide` chooses.
pub fn trace(
    bed: &Bed,
    agent: &Agent,
    owner: &Arc<AgentOwner>,
    slots: &Arc<HsaSlots>,
    what: What,
    decide: Arc<Decide>,
) -> Result<Traces, wavescope_att_resources::Error> {
    let hsa = bed.interceptor.hsa();
    let mut parameters = vec![
        TraceParameter::target(what.target_cu),
        TraceParameter::se_mask(what.se_mask),
        TraceParameter::simd_selection(0xF),
    ];
    parameters.extend(TraceParameter::buffer_size(what.buffer_bytes));
    let traced = TracedAgent {
        owner: Arc::clone(owner),
        agent_handle: hsa.gpu(agent.id).expect("a GPU of this machine").handle.handle,
        shape: shape(agent),
        config: TraceConfig::from(parameters),
        memory: Arc::new(ProgramMemory::new(hsa.clone(), agent.id)),
        slots: Arc::clone(slots) as _,
    };
    let (sink, chunks) = record_stream(STREAM, Overflow::DropNewest);
    let service = DispatchTrace::new(DispatchTraceSetup {
        context: ContextId(what.context),
        agents: vec![traced],
        programs: Arc::new(Builtin),
        interception: Arc::clone(&bed.interceptor) as _,
        claims: Arc::clone(&bed.claims),
        decide,
        serialize_all: false,
        delivery: TraceDelivery::Stream(sink),
    })?;
    Ok(Traces { service, chunks })
}

fn shape(agent: &Agent) -> AgentShape {
    AgentShape::new(
        &agent.target.to_string(),
        agent.xcc_count,
        agent.shader_engines,
        agent.compute_units,
        agent.arrays_per_engine,
    )
}
