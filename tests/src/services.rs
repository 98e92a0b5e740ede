//! Counting and tracing set up as a profiler would.

use std::sync::Arc;

use wavescope_aql_profile::{TraceConfig, TraceParameter};
use wavescope_att_resources::{
    Decide, Delivery as TraceDelivery, DeviceTrace, DeviceTraceSetup, DispatchTrace, DispatchTraceSetup,
    Error, TracedAgent,
};
use wavescope_core::{ContextId, DispatchCounters, Overflow, Records, TraceChunk, record_stream};
use wavescope_counting::{Catalogue, Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};

use crate::{Bed, Resources};

/// Room for every record of a test: nothing may be dropped unseen.
const STREAM: usize = 1 << 16;

/// A counting context and what it delivers.
pub struct Counted {
    /// The service.
    pub service: DispatchCounting,
    /// Its records.
    pub records: Records<DispatchCounters>,
}

impl Counted {
    /// What was delivered so far.
    pub fn take(&self) -> Vec<DispatchCounters> {
        std::iter::from_fn(|| self.records.try_recv()).collect()
    }
}

/// The sum of a counter over all places of a dispatch.
pub fn total(counters: &DispatchCounters, name: &str) -> f64 {
    let is_named = |id| Catalogue::name_of(id) == Some(name);
    counters.records.iter().filter(|record| is_named(record.counter)).map(|record| record.value).sum()
}

/// Counts `counters` for every dispatch on a GPU.
pub fn count(bed: &Bed, context: u64, gpu: u32, counters: &[&str]) -> Counted {
    let agent = bed.agent(gpu);
    let config = CounterConfig::new(agent, counters, &*bed.programs, bed.memory(gpu), PoolSize::default());
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
pub struct Traces<S = DispatchTrace> {
    /// The service.
    pub service: S,
    /// Its chunks.
    pub chunks: Records<TraceChunk>,
}

impl<S> Traces<S> {
    /// What was delivered so far.
    pub fn take(&self) -> Vec<TraceChunk> {
        std::iter::from_fn(|| self.chunks.try_recv()).collect()
    }
}

/// What a context traces, besides the dispatches that its callback chooses.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// The context.
    pub context: u64,
    /// The GPU.
    pub gpu: u32,
    /// Bytes of its trace buffer.
    pub buffer_bytes: u64,
    /// Shader engines.
    pub se_mask: u32,
    /// Compute unit, or WGP, in detail.
    pub target_cu: u32,
}

impl What {
    /// Engine 0 and its unit 0 of GPU 0 in a buffer of 1 MiB.
    pub fn of_context(context: u64) -> Self {
        Self { context, gpu: 0, buffer_bytes: 1 << 20, se_mask: 1, target_cu: 0 }
    }

    /// The same as parameters of a packet program.
    pub fn config(&self) -> TraceConfig {
        let mut parameters = vec![
            TraceParameter::target(self.target_cu),
            TraceParameter::se_mask(self.se_mask),
            TraceParameter::simd_selection(0xF),
        ];
        parameters.extend(TraceParameter::buffer_size(self.buffer_bytes));
        TraceConfig::from(parameters)
    }
}

/// Traces the dispatches that `decide` chooses.
///
/// # Errors
/// Those of [`DispatchTrace::new`].
pub fn trace(bed: &Bed, resources: &Resources, what: What, decide: Arc<Decide>) -> Result<Traces, Error> {
    let (sink, chunks) = record_stream(STREAM, Overflow::DropNewest);
    let service = DispatchTrace::new(DispatchTraceSetup {
        context: ContextId(what.context),
        agents: vec![traced(bed, resources, what)],
        programs: Arc::clone(&bed.programs),
        interception: Arc::clone(&bed.interceptor) as _,
        claims: Arc::clone(&bed.claims),
        decide,
        serialize_all: false,
        delivery: TraceDelivery::Stream(sink),
    })?;
    Ok(Traces { service, chunks })
}

/// Traces everything that runs on a GPU between start and stop.
///
/// # Errors
/// Those of [`DeviceTrace::new`].
pub fn device_trace(bed: &Bed, resources: &Resources, what: What) -> Result<Traces<DeviceTrace>, Error> {
    let (sink, chunks) = record_stream(STREAM, Overflow::DropNewest);
    let service = DeviceTrace::new(DeviceTraceSetup {
        context: ContextId(what.context),
        agents: vec![traced(bed, resources, what)],
        programs: Arc::clone(&bed.programs),
        claims: Arc::clone(&bed.claims),
        user_data: what.context,
        delivery: TraceDelivery::Stream(sink),
    })?;
    Ok(Traces { service, chunks })
}

fn traced(bed: &Bed, resources: &Resources, what: What) -> TracedAgent {
    TracedAgent {
        owner: Arc::clone(&resources.owner),
        agent_handle: bed.gpu(what.gpu).agent().handle,
        shape: bed.shape(what.gpu),
        config: what.config(),
        memory: bed.memory(what.gpu),
        slots: Arc::clone(&resources.slots) as _,
    }
}
