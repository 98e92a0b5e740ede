//! Device trace over the in-process runtime: real queue, memory and completions, packets that are executed, on a GPU with
//! all its parts and on one that lacks some.
//!
//! Judged by the software GPU's log of where waves ran, which it writes before any trace code runs.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wavescope_aql_profile::{AgentShape, Builtin, TraceConfig, TraceParameter};
use wavescope_att_decode::{CodeObjects, Decoder, EventKind, Options, Record};
use wavescope_att_resources::{
    AgentOwner, Delivery, DeviceTrace, DeviceTraceSetup, Error, HsaDevice, Limits, TracedAgent,
};
use wavescope_core::{
    AgentId, ClaimTable, CodeObjectId, ContextId, GfxTarget, LoadedCodeObject, Overflow, Records, TraceChunk,
    record_stream,
};
use wavescope_hsa::Hsa;
use wavescope_hsa_intercept::ProgramMemory;
use wavescope_software_gpu::face::{Options as FaceOptions, SoftwareRuntime};
use wavescope_software_gpu::{Fault, FaultPlan, Harvest, StatusLie, Truth, TruthSink, WaveTruth};
use wavescope_workload::Application;
use wavescope_workload::sample::Sample;

const AGENT: AgentId = AgentId(0);
const PATIENCE: Duration = Duration::from_secs(30);
/// The engine that is traced: the second of XCC 2 on a chip with 4 engines for each XCC.
const ENGINE: u32 = 9;
const ENGINE_OF_XCC: (u8, u8) = (2, 1);
const UNIT: u8 = 1;

/// The waves that ran.
#[derive(Default)]
struct Waves(Mutex<Vec<WaveTruth>>);

impl TruthSink for Waves {
    fn record(&self, truth: &Truth) {
        if let Truth::Wave(wave) = truth {
            self.0.lock().unwrap().push(*wave);
        }
    }
}

impl Waves {
    /// Places of the waves of one engine so far, in the order of their starts.
    fn on_engine(&self, engine: u32) -> Vec<(u8, u8, u8)> {
        let waves = self.0.lock().unwrap();
        let mut here: Vec<_> =
            waves.iter().filter(|wave| u32::from(wave.xcc) * 4 + u32::from(wave.se) == engine).collect();
        here.sort_by_key(|wave| (wave.start, wave.cu, wave.simd, wave.slot));
        here.iter().map(|wave| (wave.cu, wave.simd, wave.slot)).collect()
    }
}

/// What a trace shows.
struct Decoded {
    /// Places of wave starts in stream order (of one clock in order of place).
    starts: Vec<(u8, u8, u8)>,
    /// Places of the waves with instructions.
    detailed: Vec<(u8, u8)>,
    code_objects: Vec<u64>,
}

fn decode(data: &[u8]) -> Decoded {
    let (mut starts, mut detailed, mut code_objects) = (Vec::new(), Vec::new(), Vec::new());
    let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Occupancy(records) => {
            let found = records.iter().filter(|record| record.is_start());
            starts.extend(found.map(|record| (record.time, record.cu, record.simd, record.wave_id)));
        }
        Record::Wave(wave) => detailed.push((wave.cu, wave.simd)),
        Record::Event(event) if event.kind == EventKind::CodeObjectLoad => code_objects.push(event.payload),
        _ => {}
    });
    outcome.unwrap();
    starts.sort();
    let starts = starts.into_iter().map(|(_, cu, simd, slot)| (cu, simd, slot)).collect();
    Decoded { starts, detailed, code_objects }
}

/// Unit 1 of the engine in detail, of the other units the waves alone.
fn device_trace(
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

fn run(application: &Application, sample: &Sample) {
    let gpu = &application.gpus()[0];
    let queue = application.queue(gpu, 256).unwrap();
    for batch in sample.batches(1).unwrap() {
        queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
    }
}

/// A machine with one GPU, and the application on it; dropped from the top.
struct Bed {
    sample: Sample,
    application: Application,
    hsa: Hsa,
    shape: AgentShape,
    waves: Arc<Waves>,
    _runtime: SoftwareRuntime,
}

impl Bed {
    fn new(target: GfxTarget, faults: Vec<Fault>) -> Self {
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

#[test]
fn device_trace_shows_every_wave_between_start_and_stop_and_no_other() {
    let bed = Bed::new(GfxTarget::GFX942, vec![]);
    let Bed { application, sample, waves, .. } = &bed;
    let (trace, chunks, _owner) = device_trace(&bed, ENGINE, PATIENCE);
    let code = LoadedCodeObject { id: CodeObjectId(77), agent: AGENT, base: 0x10_0000, size: 0x1000 };
    for round in 0..2 {
        run(application, sample); // not traced
        let before = waves.on_engine(ENGINE).len();
        trace.start().unwrap();
        run(application, sample);
        if round == 0 {
            trace.code_object_loaded(&code).unwrap();
        }
        trace.stop().unwrap();
        let placed = waves.on_engine(ENGINE).split_off(before);
        let chunk = chunks.try_recv().unwrap();
        assert!(chunk.flags.end && !chunk.flags.lost && !chunk.flags.gpu_buffer_full);
        assert_eq!((chunk.shader_engine, chunk.dispatch), (ENGINE, None));
        let Decoded { starts, code_objects, .. } = decode(&chunk.data);
        assert!(starts.len() > 20, "only {} waves", starts.len());
        assert_eq!(starts, placed, "round {round}");
        assert_eq!(code_objects, [77], "loaded while it ran, and there from the start later");
    }
    assert!(chunks.try_recv().is_none());
    assert_eq!(trace.summary().delivered, 2);
}

/// Nothing is wrong with such a trace: it decodes, shows the waves of the other units, and has none in detail.
#[test]
fn trace_of_a_harvested_unit_is_whole_and_has_no_wave_in_detail() {
    let (xcc, se) = ENGINE_OF_XCC;
    for (faults, is_there) in
        [(vec![], true), (vec![Fault::Harvest(Harvest { xcc, se, sa: 0, cu: UNIT })], false)]
    {
        let bed = Bed::new(GfxTarget::GFX942, faults);
        let (trace, chunks, _owner) = device_trace(&bed, ENGINE, PATIENCE);
        trace.start().unwrap();
        run(&bed.application, &bed.sample);
        trace.stop().unwrap();
        let chunk = chunks.try_recv().unwrap();
        let Decoded { starts, detailed, .. } = decode(&chunk.data);
        let placed = bed.waves.on_engine(ENGINE);
        assert_eq!(placed.iter().any(|(cu, ..)| *cu == UNIT), is_there);
        assert_eq!(starts, placed);
        assert!(
            detailed.iter().all(|(cu, _)| *cu == UNIT) && detailed.is_empty() != is_there,
            "{detailed:?}"
        );
        assert!(!chunk.flags.lost && !chunk.flags.gpu_buffer_full);
    }
}

/// From gfx10 on the stop's commands wait until SQ_THREAD_TRACE_STATUS is idle (BUSY, bit 25); engine 0, whose register a
/// broadcast reads, never is.
#[test]
fn engine_that_stays_busy_is_an_error_in_time_and_leaves_the_application_alone() {
    let lie = StatusLie { xcc: 0, se: 0, set: 1 << 25, clear: 0 };
    let bed = Bed::new(GfxTarget::GFX1100, vec![Fault::LieStatus(lie)]);
    let (trace, chunks, owner) = device_trace(&bed, 0, Duration::from_millis(300));
    trace.start().unwrap();
    run(&bed.application, &bed.sample);
    let begin = Instant::now();
    let error = trace.stop().unwrap_err();
    assert!(matches!(error, Error::AgentSilent { agent: AGENT, .. }), "{error}");
    assert!(matches!(trace.start(), Err(Error::AgentSilent { .. })), "nothing more starts");
    assert!(chunks.try_recv().unwrap().flags.lost);
    drop(trace);
    let report = owner.shutdown().unwrap();
    assert_eq!(report.leaked, [], "the hung queue is gone, and its packets with it");
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    run(&bed.application, &bed.sample);
}
