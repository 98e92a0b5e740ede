//! Device trace over the in-process runtime: real queue, memory and completions, packets that are executed, on a GPU with
//! all its parts and on one that lacks some.
//!
//! Judged by the software GPU's log of where waves ran, which it writes before any trace code runs.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

#[path = "support/bed.rs"]
mod bed;

use std::time::{Duration, Instant};

use bed::{AGENT, Bed, PATIENCE, UNIT, device_trace, run};
use wavescope_att_decode::{CodeObjects, Decoder, EventKind, Options, Record};
use wavescope_att_resources::Error;
use wavescope_core::{CodeObjectId, GfxTarget, LoadedCodeObject};
use wavescope_software_gpu::{Fault, Harvest, StatusLie};

/// The engine that is traced: the second of XCC 2 on a chip with 4 engines for each XCC.
const ENGINE: u32 = 9;
const ENGINE_OF_XCC: (u8, u8) = (2, 1);

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
