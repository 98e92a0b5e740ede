//! A machine with one GPU, the application on it, and a device trace of one of its engines.
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wavescope_aql_profile::{AgentShape, Builtin, TraceConfig, TraceParameter};
use wavescope_att_resources::{
    AgentOwner, Delivery, DeviceTrace, DeviceTraceSetup, HsaDevice, Limits, TracedAgent,
};
use wavescope_core::{
    AgentId, ClaimTable, ContextId, GfxTarget, Overflow, Records, TraceChunk, record_stream,
};
use wavescope_hsa::Hsa;
use wavescope_hsa_intercept::ProgramMemory;
use wavescope_software_gpu::face::{Options as FaceOptions, SoftwareRuntime};
use wavescope_software_gpu::{Fault, FaultPlan, Truth, TruthSink, WaveTruth};
use wavescope_workload::Application;
use wavescope_workload::sample::Sample;

pub(crate) const AGENT: AgentId = AgentId(0);
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The unit that is traced in detail.
pub(crate) const UNIT: u8 = 1;

/// The waves that ran.
#[derive(Default)]
pub(crate) struct Waves(Mutex<Vec<WaveTruth>>);

impl TruthSink for Waves {
    fn record(&self, truth: &Truth) {
        if let Truth::Wave(wave) = truth {
            self.0.lock().unwrap().push(*wave);
        }
    }
}

impl Waves {
    /// Places of the waves of one engine so far, in the order of their starts.
    pub(crate) fn on_engine(&self, engine: u32) -> Vec<(u8, u8, u8)> {
        let waves = self.0.lock().unwrap();
        let mut here: Vec<_> =
            waves.iter().filter(|wave| u32::from(wave.xcc) * 4 + u32::from(wave.se) == engine).collect();
        here.sort_by_key(|wave| (wave.start, wave.cu, wave.simd, wave.slot));
        here.iter().map(|wave| (wave.cu, wave.simd, wave.slot)).collect()
    }
}

/// Unit 1 of the engine in detail, of the other units the waves alone.
pub(crate) fn device_trace(
    bed: &Bed,
    engine: u32,
    patience: Duration,
) -> (DeviceTrace, Records<TraceChunk>, Arc<AgentOwner>) {
    let device = HsaDevice::new(bed.hsa.clone(), AGENT);
    let slots = device.slots();
    let owner = AgentOwner::new(AGENT, Box::new(device), Limits { patience, traces: 4 });
    let mut parameters = vec![
        TraceParameter::target(UNIT.into()),
        TraceParameter::se_mask(1 << engine),
        TraceParameter::simd_selection(0xF),
    ];
    parameters.extend(TraceParameter::buffer_size(8 << 20));
    let (sink, chunks) = record_stream(16, Overflow::Block);
    let agent = TracedAgent {
        owner: Arc::clone(&owner),
        agent_handle: bed.application.gpus()[0].agent().handle,
        shape: bed.shape.clone(),
        config: TraceConfig::from(parameters),
        memory: Arc::new(ProgramMemory::new(bed.hsa.clone(), AGENT)),
        slots,
    };
    let setup = DeviceTraceSetup {
        context: ContextId(1),
        agents: vec![agent],
        programs: Arc::new(Builtin),
        claims: Arc::new(ClaimTable::new()),
        user_data: 0,
        delivery: Delivery::Stream(sink),
    };
    (DeviceTrace::new(setup).unwrap(), chunks, owner)
}

pub(crate) fn run(application: &Application, sample: &Sample) {
    let gpu = &application.gpus()[0];
    let queue = application.queue(gpu, 256).unwrap();
    for batch in sample.batches(1).unwrap() {
        queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
    }
}

/// A machine with one GPU, and the application on it; dropped from the top.
pub(crate) struct Bed {
    pub(crate) sample: Sample,
    pub(crate) application: Application,
    hsa: Hsa,
    shape: AgentShape,
    pub(crate) waves: Arc<Waves>,
    _runtime: SoftwareRuntime,
}

impl Bed {
    pub(crate) fn new(target: GfxTarget, faults: Vec<Fault>) -> Self {
        let waves = Arc::new(Waves::default());
        let options = FaceOptions::preset(target, 1).truth(waves.clone());
        let runtime = SoftwareRuntime::start(options.faults(FaultPlan { faults })).unwrap();
        // SAFETY: the runtime lives longer than the application, and nobody replaces an entry.
        let application = unsafe { Application::open(runtime.table()) }.unwrap();
        // SAFETY: likewise.
        let hsa = unsafe { Hsa::from_table(runtime.table(), Some(runtime.topology())) }.unwrap();
        let sample = Sample::load(&application, &application.gpus()[0]).unwrap();
        let shape = AgentShape::from(&runtime.topology().agents()[0]);
        Self { sample, application, hsa, shape, waves, _runtime: runtime }
    }
}
