//! Runtime, interception, counting and queues of a measured process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hsa_sys::{
    HSA_QUEUE_TYPE_MULTI, HSA_STATUS_SUCCESS, HsaApiTable, hsa_queue_t, hsa_signal_t, hsa_status_t,
};
use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{
    AqlPacket, ClaimTable, ContextId, DispatchCounters, DispatchTimes, Fence, Interception, PacketHeader,
    PacketType, QueueId, Topology,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Interceptor, Options, ProgramMemory};
use wavescope_on_rocr::{Gpus, runtime_table};
use wavescope_workload::{Application, kernels};

use crate::Outcome;
use crate::application::DEPTH;
use crate::case::{Case, Queues, Who};
use crate::rig::COUNTERS;

/// The GPU of all measurements.
pub(crate) const GPU: &str = "gfx942";
/// Three batches of what interception emits for 64 counted kernels fit.
const PACKETS: u32 = 4096;
const LIMIT: Duration = Duration::from_secs(60);

/// An application has one; interception always does.
unsafe extern "C-unwind" fn on_error(_: hsa_status_t, _: *mut hsa_queue_t, _: *mut std::ffi::c_void) {}

/// Everything that is there while something is measured.
pub(crate) struct Stage {
    case: Case,
    pub(crate) table: *mut HsaApiTable,
    pub(crate) topology: Topology,
    interceptor: Option<Arc<Interceptor>>,
    counting: Option<DispatchCounting>,
    /// Queue and times of what was counted.
    counted: Arc<Mutex<Vec<(QueueId, DispatchTimes)>>>,
    application: Application,
    /// A dispatch of the empty kernel, one wave.
    pub(crate) kernel: AqlPacket,
}

impl Stage {
    /// Starts the runtime and whatever the case wants around it.
    pub(crate) fn set(case: &Case) -> Outcome<Self> {
        let table = runtime_table()?.cast_mut();
        let topology = Topology::read(&GPU.parse::<Gpus>()?.folder()?)?;
        let interceptor = match case.queues {
            Queues::Intercepted(technique) => {
                let options = Options { technique: Some(technique), ..Options::default() };
                // SAFETY: the runtime's own table; nobody else uses it yet.
                Some(unsafe { Interceptor::install(table, Some(&topology), options) }?)
            }
            Queues::Plain | Queues::PassOn | Queues::Floor => None,
        };
        let counted = Arc::new(Mutex::new(Vec::with_capacity(1 << 20)));
        let counting = match (&interceptor, case.who) {
            (Some(interceptor), Who::Declined | Who::Counted) => {
                let client = Arc::clone(&counted);
                let keep = move |counters: DispatchCounters| {
                    let mut counted = client.lock().unwrap_or_else(PoisonError::into_inner);
                    counted.push((counters.dispatch.queue, counters.times));
                };
                Some(count(interceptor, &topology, case.who == Who::Counted, keep)?)
            }
            _ => None,
        };
        // SAFETY: the runtime's table lives to the end of the process; entries were replaced for good.
        let application = unsafe { Application::open(table) }?;
        let gpu = application.gpus()[0].clone();
        let module = application.load(&gpu, kernels::vectors(gpu.target())?)?;
        let kernel = dispatch_of(module.kernel("empty")?.object);
        std::mem::forget(module);
        Ok(Self { case: *case, table, topology, interceptor, counting, counted, application, kernel })
    }

    /// A queue as the case wants it.
    pub(crate) fn queue(&self, hook: hsa_sys::hsa_amd_queue_intercept_handler) -> Outcome<*mut hsa_queue_t> {
        // SAFETY: the runtime's table.
        let parts = unsafe { &*self.table };
        // SAFETY: likewise.
        let core = unsafe { &*parts.core_ };
        // SAFETY: likewise.
        let amd = unsafe { &*parts.amd_ext_ };
        let pass_on = self.case.queues == Queues::PassOn;
        let create = if pass_on { amd.hsa_amd_queue_intercept_create_fn } else { core.hsa_queue_create_fn };
        let create = create.ok_or("no queue entry")?;
        let (agent, kind) = (self.application.gpus()[0].agent(), HSA_QUEUE_TYPE_MULTI.0);
        let (none, most) = (std::ptr::null_mut(), u32::MAX);
        let mut queue = std::ptr::null_mut();
        // SAFETY: the agent is the runtime's, and the callback ignores what it gets.
        ok(unsafe { create(agent, PACKETS, kind, Some(on_error), none, most, most, &raw mut queue) })?;
        let enable = amd.hsa_amd_profiling_set_profiler_enabled_fn.ok_or("no profiling")?;
        // SAFETY: the queue was just made.
        ok(unsafe { enable(queue, 1) })?;
        if pass_on {
            let register = amd.hsa_amd_queue_intercept_register_fn.ok_or("no hooks")?;
            // SAFETY: an intercept queue; the hook ignores its data.
            ok(unsafe { register(queue, hook, none) })?;
        }
        Ok(queue)
    }

    /// Signals for the batches of one queue. They stay.
    pub(crate) fn signals(&self) -> Outcome<[hsa_signal_t; DEPTH]> {
        let mut handles = [hsa_signal_t { handle: 0 }; DEPTH];
        for handle in &mut handles {
            let signal = self.application.signal(0)?;
            *handle = signal.handle();
            std::mem::forget(signal);
        }
        Ok(handles)
    }

    /// Stops counting; queue and times of everything that was counted.
    pub(crate) fn finish(&self) -> Outcome<Vec<(QueueId, DispatchTimes)>> {
        let Some(counting) = &self.counting else { return Ok(Vec::new()) };
        counting.stop(LIMIT)?;
        let summary = counting.summary();
        if summary.lost + summary.skipped > 0 {
            return Err(format!("{summary:?}").into());
        }
        Ok(std::mem::take(&mut *self.counted.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Ends interception.
    pub(crate) fn leave(self) -> Outcome {
        drop(self.counting);
        if let Some(interceptor) = self.interceptor {
            interceptor.shut_down()?;
        }
        Ok(())
    }
}

fn count(
    interceptor: &Arc<Interceptor>,
    topology: &Topology,
    count: bool,
    client: impl Fn(DispatchCounters) + Send + Sync + 'static,
) -> Outcome<DispatchCounting> {
    let agent = topology.agents().first().ok_or("no GPU")?;
    let memory: Arc<dyn Memory> = Arc::new(ProgramMemory::new(interceptor.hsa().clone(), agent.id));
    let config = CounterConfig::new(agent, &COUNTERS, &Builtin, memory, PoolSize::default())?;
    let interception: Arc<dyn Interception> = Arc::<Interceptor>::clone(interceptor);
    let counting = DispatchCounting::new(Setup {
        context: ContextId(1),
        agents: vec![agent.id],
        interception,
        claims: Arc::new(ClaimTable::new()),
        choose: Arc::new(move |_| Choice { config: count.then(|| Arc::clone(&config)), user_data: 0 }),
        delivery: Delivery::Callback(Box::new(client)),
    })?;
    counting.start()?;
    Ok(counting)
}

/// `hsa_kernel_dispatch_packet_t` of one wave.
fn dispatch_of(object: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[..6].copy_from_slice(&[1 << 16, 64 | 1 << 16, 1, 64, 1, 1]);
    packet.0[8..10].copy_from_slice(&[object as u32, (object >> 32) as u32]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::System, Fence::System));
    packet
}

pub(crate) fn ok(status: hsa_status_t) -> Outcome {
    if status == HSA_STATUS_SUCCESS { Ok(()) } else { Err(format!("status {:#x}", status.0).into()) }
}
