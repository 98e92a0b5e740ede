//! Device trace over the in-process runtime: real queue, memory and completions, packets that are executed.
//!
//! Judged by the software GPU's log of where waves ran, which it writes before any trace code runs.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wavescope_aql_profile::{AgentShape, Builtin, TraceConfig, TraceParameter};
use wavescope_att_decode::{CodeObjects, Decoder, EventKind, Options, Record};
use wavescope_att_resources::{
    AgentOwner, Delivery, DeviceTrace, DeviceTraceSetup, HsaDevice, Limits, TracedAgent,
};
use wavescope_core::{
    AgentId, ClaimTable, CodeObjectId, ContextId, GfxTarget, LoadedCodeObject, Overflow, Records, TraceChunk,
    record_stream,
};
use wavescope_hsa::Hsa;
use wavescope_hsa_intercept::ProgramMemory;
use wavescope_software_gpu::face::{Options as FaceOptions, SoftwareRuntime};
use wavescope_software_gpu::{Truth, TruthSink, WaveTruth};
use wavescope_workload::Application;
use wavescope_workload::sample::Sample;

const AGENT: AgentId = AgentId(0);
const PATIENCE: Duration = Duration::from_secs(30);
/// The engine that is traced: the second of XCC 2 on a chip with 4 engines for each XCC.
const ENGINE: u32 = 9;

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

/// Places of wave starts in stream order (of one clock in order of place), and ids of code objects.
fn decode(data: &[u8]) -> (Vec<(u8, u8, u8)>, Vec<u64>) {
    let (mut starts, mut code_objects) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Occupancy(records) => {
            let found = records.iter().filter(|record| record.is_start());
            starts.extend(found.map(|record| (record.time, record.cu, record.simd, record.wave_id)));
        }
        Record::Event(event) if event.kind == EventKind::CodeObjectLoad => code_objects.push(event.payload),
        _ => {}
    });
    outcome.unwrap();
    starts.sort();
    (starts.into_iter().map(|(_, cu, simd, slot)| (cu, simd, slot)).collect(), code_objects)
}

fn device_trace(hsa: &Hsa, agent_handle: u64) -> (DeviceTrace, Records<TraceChunk>) {
    let device = HsaDevice::new(hsa.clone(), AGENT);
    let slots = device.slots();
    let owner = AgentOwner::new(AGENT, Box::new(device), Limits { patience: PATIENCE, traces: 4 });
    let mut parameters = vec![
        TraceParameter::target(1),
        TraceParameter::se_mask(1 << ENGINE),
        TraceParameter::simd_selection(0xF),
    ];
    parameters.extend(TraceParameter::buffer_size(8 << 20));
    let (sink, chunks) = record_stream(16, Overflow::Block);
    let agent = TracedAgent {
        owner,
        agent_handle,
        shape: AgentShape::new("gfx942", 8, 32, 304, 1),
        config: TraceConfig::from(parameters),
        memory: Arc::new(ProgramMemory::new(hsa.clone(), AGENT)),
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
    (DeviceTrace::new(setup).unwrap(), chunks)
}

fn run(application: &Application, sample: &Sample) {
    let gpu = &application.gpus()[0];
    let queue = application.queue(gpu, 256).unwrap();
    for batch in sample.batches(1).unwrap() {
        queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
    }
}

#[test]
fn device_trace_shows_every_wave_between_start_and_stop_and_no_other() {
    let waves = Arc::new(Waves::default());
    let options = FaceOptions::preset(GfxTarget::GFX942, 1).truth(waves.clone());
    let runtime = SoftwareRuntime::start(options).unwrap();
    // SAFETY: the runtime lives to the end of this test, and nobody replaces an entry.
    let application = unsafe { Application::open(runtime.table()) }.unwrap();
    // SAFETY: likewise.
    let hsa = unsafe { Hsa::from_table(runtime.table(), Some(runtime.topology())) }.unwrap();
    let sample = Sample::load(&application, &application.gpus()[0]).unwrap();
    let (trace, chunks) = device_trace(&hsa, application.gpus()[0].agent().handle);
    let code = LoadedCodeObject { id: CodeObjectId(77), agent: AGENT, base: 0x10_0000, size: 0x1000 };
    for round in 0..2 {
        run(&application, &sample); // not traced
        let before = waves.on_engine(ENGINE).len();
        trace.start().unwrap();
        run(&application, &sample);
        if round == 0 {
            trace.code_object_loaded(&code).unwrap();
        }
        trace.stop().unwrap();
        let placed = waves.on_engine(ENGINE).split_off(before);
        let chunk = chunks.try_recv().unwrap();
        assert!(chunk.flags.end && !chunk.flags.lost && !chunk.flags.gpu_buffer_full);
        assert_eq!((chunk.shader_engine, chunk.dispatch), (ENGINE, None));
        let (starts, code_objects) = decode(&chunk.data);
        assert!(starts.len() > 20, "only {} waves", starts.len());
        assert_eq!(starts, placed, "round {round}");
        assert_eq!(code_objects, [77], "loaded while it ran, and there from the start later");
    }
    assert!(chunks.try_recv().is_none());
    assert_eq!(trace.summary().delivered, 2);
}
