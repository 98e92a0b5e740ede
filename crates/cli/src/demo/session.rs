//! Runs the workload under counting and tracing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use wavescope_aql_profile::{AgentShape, Builtin, Memory, TraceConfig, TraceParameter};
use wavescope_att_decode::CodeObjects;
use wavescope_att_resources::{
    AgentOwner, Decision, Delivery as TraceDelivery, DispatchTrace, DispatchTraceSetup, HsaDevice, Limits,
    TracedAgent,
};
use wavescope_core::{
    Agent, ClaimTable, ContextId, DispatchCounters, Overflow, Records, TraceChunk, record_stream,
};
use wavescope_counting::{
    Choice, CounterConfig, Delivery as CountDelivery, DispatchCounting, PoolSize, Setup,
};
use wavescope_hsa_intercept::ProgramMemory;
use wavescope_workload::Launch;
use wavescope_workload::sample::Sample;

use super::Machine;
use super::convert::{Names, code_objects, gpu, trace};
use super::metered::{Metered, Usage};
use super::results::{CodeObject, Dispatch, Losses, Results, Shared, Trace};
use crate::progress::Progress;

/// What is counted.
const COUNTERS: [&str; 3] = ["SQ_WAVES", "GRBM_COUNT", "GRBM_GUI_ACTIVE"];
/// Application queues.
const QUEUES: usize = 2;
/// Packets of each.
const QUEUE_PACKETS: u32 = 256;
/// A software GPU that is silent for so long is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// Launches of the workload that a context traces in its turn, counted from its own number.
const TRACED_LAUNCHES: [usize; 2] = [0, 4];
/// Trace buffers of contexts, in turns: different sizes in one shared slot.
const BUFFER_BYTES: [u64; 2] = [2 << 20, 1 << 20];

/// Counts every dispatch and lets each of `contexts` contexts trace in its turn.
///
/// # Errors
/// What did not work, and where.
pub(crate) fn run(machine: &Machine, contexts: u32) -> anyhow::Result<Results> {
    let agent = machine.agent()?;
    let sample = Sample::load(machine.application(), machine.gpu()?)?;
    let claims = Arc::new(ClaimTable::new());
    let memory = Arc::new(ProgramMemory::new(machine.interceptor.hsa().clone(), agent.id));
    let (counting, counted) = counting(machine, agent, &memory, &claims)?;
    let tracing = Tracing::new(machine, agent, &memory, &claims, contexts)?;
    let launches = sample.launches()?;
    counting.start()?;
    let turns = tracing.take_turns(machine, &sample, &launches);
    counting.stop(PATIENCE)?;
    turns?;
    let code_objects = code_objects(machine)?;
    let names = Names(&machine.interceptor);
    let mut dispatches: Vec<Dispatch> =
        std::iter::from_fn(|| counted.try_recv()).map(|counters| names.dispatch(counters)).collect();
    dispatches.sort_by_key(|dispatch| dispatch.dispatch);
    let summary = counting.summary();
    let mut losses = tracing.losses();
    losses.dispatches = summary.skipped + summary.lost;
    losses.records += counted.lost();
    let (traces, shared) = tracing.finish(&dispatches, &agent.target.to_string(), &code_objects)?;
    Ok(Results { gpu: gpu(agent), dispatches, traces, shared, losses, code_objects })
}

/// The counting service on the agent, every dispatch with the same counters.
fn counting(
    machine: &Machine,
    agent: &Agent,
    memory: &Arc<ProgramMemory>,
    claims: &Arc<ClaimTable>,
) -> anyhow::Result<(DispatchCounting, Records<DispatchCounters>)> {
    let memory: Arc<dyn Memory> = Arc::clone(memory) as _;
    let config = CounterConfig::new(agent, &COUNTERS, &Builtin, memory, PoolSize::default())?;
    // Everything is received at the end, so nothing may be dropped before.
    let (sink, counted) = record_stream(1 << 16, Overflow::DropNewest);
    let counting = DispatchCounting::new(Setup {
        context: ContextId(0),
        agents: vec![agent.id],
        interception: Arc::clone(&machine.interceptor) as _,
        claims: Arc::clone(claims),
        choose: Arc::new(move |_| Choice { config: Some(Arc::clone(&config)), user_data: 0 }),
        delivery: CountDelivery::Stream(sink),
    })?;
    Ok((counting, counted))
}

/// All tracing contexts of the agent.
struct Tracing {
    owner: Arc<AgentOwner>,
    usage: Arc<Usage>,
    contexts: Vec<(DispatchTrace, Arc<Chosen>)>,
    chunks: Records<TraceChunk>,
}

/// Kernels that a context traces, by descriptor address.
#[derive(Default)]
struct Chosen(std::sync::Mutex<Vec<u64>>);

/// The service of one context, which traces what is chosen.
fn trace_service(
    machine: &Machine,
    number: u32,
    agent: TracedAgent,
    claims: &Arc<ClaimTable>,
    chosen: Arc<Chosen>,
    delivery: TraceDelivery,
) -> anyhow::Result<DispatchTrace> {
    let setup = DispatchTraceSetup {
        context: ContextId(u64::from(number) + 1),
        agents: vec![agent],
        programs: Arc::new(Builtin),
        interception: Arc::clone(&machine.interceptor) as _,
        claims: Arc::clone(claims),
        decide: Arc::new(move |dispatch| chosen.decide(dispatch.kernel_object)),
        serialize_all: false,
        delivery,
    };
    Ok(DispatchTrace::new(setup)?)
}

impl Tracing {
    /// Makes all contexts before the first starts: their sizes decide the shared slot.
    fn new(
        machine: &Machine,
        agent: &Agent,
        memory: &Arc<ProgramMemory>,
        claims: &Arc<ClaimTable>,
        contexts: u32,
    ) -> anyhow::Result<Self> {
        let hsa = machine.interceptor.hsa();
        let device = HsaDevice::new(hsa.clone(), agent.id);
        let slots = device.slots();
        let (device, usage) = Metered::new(device);
        let owner = AgentOwner::new(agent.id, Box::new(device), Limits { patience: PATIENCE, traces: 64 });
        let (sink, chunks) = record_stream(1 << 16, Overflow::DropNewest);
        let context = |number: u32| {
            let chosen = Arc::new(Chosen::default());
            let agent = TracedAgent {
                owner: Arc::clone(&owner),
                agent_handle: hsa.gpu(agent.id)?.handle.handle,
                shape: AgentShape::from(agent),
                config: config(BUFFER_BYTES[number as usize % BUFFER_BYTES.len()]),
                memory: Arc::clone(memory) as _,
                slots: Arc::clone(&slots) as _,
            };
            let delivery = TraceDelivery::Stream(sink.clone());
            let trace = trace_service(machine, number, agent, claims, Arc::clone(&chosen), delivery)?;
            anyhow::Ok((trace, chosen))
        };
        let contexts = (0..contexts).map(context).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { owner: Arc::clone(&owner), usage, contexts, chunks })
    }

    /// Each context traces two kernels of the workload, one context at a time.
    fn take_turns(&self, machine: &Machine, sample: &Sample, launches: &[Launch]) -> anyhow::Result<()> {
        let gpu = machine.gpu()?;
        let queues = (0..QUEUES).map(|_| machine.application().queue(gpu, QUEUE_PACKETS));
        let queues = queues.collect::<Result<Vec<_>, _>>()?;
        let progress = Progress::new(self.contexts.len() as u64, "tracing contexts");
        for (number, (trace, chosen)) in self.contexts.iter().enumerate() {
            let wanted =
                TRACED_LAUNCHES.map(|place| launches[(number + place) % launches.len()].kernel_object());
            chosen.set(wanted.to_vec());
            for code in machine.interceptor.code_objects() {
                trace.code_object_loaded(&code.loaded)?;
            }
            trace.start().with_context(|| format!("{} did not start", trace.context()))?;
            let mut submitted = Vec::new();
            for (queue, batch) in queues.iter().zip(sample.batches(QUEUES)?) {
                submitted.push(queue.submit(&batch)?);
            }
            for submission in submitted {
                submission.wait(PATIENCE)?;
            }
            trace.stop(PATIENCE).with_context(|| format!("{} did not stop", trace.context()))?;
            progress.step();
        }
        Ok(())
    }

    /// What of the traces is missing. Right once all contexts have stopped.
    fn losses(&self) -> Losses {
        let summaries = self.contexts.iter().map(|(trace, _)| trace.summary());
        let traces = summaries.map(|summary| summary.skipped + summary.lost).sum();
        Losses { dispatches: 0, traces, records: self.chunks.lost() }
    }

    /// Gives the resources back and decodes everything that was delivered.
    fn finish(
        self,
        dispatches: &[Dispatch],
        target: &str,
        code: &[CodeObject],
    ) -> anyhow::Result<(Vec<Trace>, Shared)> {
        let contexts = self.contexts.len() as u32;
        drop(self.contexts);
        self.owner.shutdown()?;
        let mut objects = CodeObjects::new();
        for object in code {
            objects.add(object.content, Some(object.load_address), Some(object.id))?;
        }
        let chunks = std::iter::from_fn(|| self.chunks.try_recv());
        let traces = chunks.map(|chunk| trace(chunk, dispatches, target, code, &objects)).collect();
        Ok((traces, self.usage.shared(contexts)))
    }
}

impl Chosen {
    fn set(&self, kernels: Vec<u64>) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = kernels;
    }

    /// Traces each chosen kernel once.
    fn decide(&self, kernel: u64) -> Decision {
        let mut kernels = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match kernels.iter().position(|&chosen| chosen == kernel) {
            Some(index) => {
                kernels.swap_remove(index);
                Decision::StartAndStop { user_data: 0 }
            }
            None => Decision::None,
        }
    }
}

/// Shader engine 0, compute unit (or WGP) 0 in detail.
fn config(buffer_bytes: u64) -> TraceConfig {
    let mut parameters =
        vec![TraceParameter::target(0), TraceParameter::se_mask(1), TraceParameter::simd_selection(0xF)];
    parameters.extend(TraceParameter::buffer_size(buffer_bytes));
    TraceConfig::from(parameters)
}
