//! Decoded instructions and instruction counters against the software GPU's log of what its waves walked.

#![cfg(test)]

use std::collections::HashMap;
use std::sync::Arc;

use wavescope_aql_profile::{TraceConfig, TraceParameter};
use wavescope_att_decode::{CodeObjects, Decoder, EventKind, Info, Options, Record};
use wavescope_att_resources::{Decision, Delivery, DispatchTrace, DispatchTraceSetup, TracedAgent};
use wavescope_core::{ContextId, DispatchCounters, Overflow, TraceChunk, record_stream};
use wavescope_counting::Catalogue;
use wavescope_hsa_intercept::Technique;
use wavescope_software_gpu::{Fault, FaultPlan, TraceLoss};
use wavescope_tests::{
    Bed, PATIENCE, Placed, PlacedWave, TARGETS, What, count, decode_walks, device_trace, is_detailed, loaded,
    on_both_faces, on_engine, relative, run_code, total, walked,
};
use wavescope_workload::Launch;
use wavescope_workload::sample::Sample;

/// Dispatches of these launches, in the order in which they ran. The real runtime runs kernels of its own too.
fn dispatches(bed: &Bed, launches: &[Launch]) -> Vec<Placed> {
    let mut all = bed.placement.dispatches(0);
    all.retain(|dispatch| launches.iter().any(|launch| launch.kernel_object() == dispatch.kernel_object));
    all
}

/// The sample workload, traced with these parameters beyond engine and buffer: each dispatch's chunk, what ran, and the
/// code objects.
struct TracedSample {
    chunks: Vec<TraceChunk>,
    dispatches: Vec<Placed>,
    code: Vec<(&'static [u8], u64)>,
}

/// The sample workload, counted: each dispatch's record, and what ran.
fn count_sample(bed: &Bed, names: &[&str]) -> (Vec<DispatchCounters>, Vec<Placed>) {
    let counted = count(bed, 1, 0, names);
    let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
    counted.service.start().unwrap();
    run_sample(bed, &sample);
    counted.service.stop(PATIENCE).unwrap();
    let (records, dispatches) = (counted.take(), dispatches(bed, &sample.launches().unwrap()));
    assert_eq!(records.len(), dispatches.len());
    (records, dispatches)
}

fn trace_sample(bed: &Bed, parameters: &[TraceParameter]) -> TracedSample {
    let traced = trace_unit(bed, (1, 0), parameters);
    assert_eq!(traced.chunks.len(), traced.dispatches.len());
    traced
}

/// The same for the engines of a mask and a unit of theirs.
fn trace_unit(bed: &Bed, (mask, unit): (u32, u32), parameters: &[TraceParameter]) -> TracedSample {
    let resources = bed.resources(0);
    let mut all = vec![TraceParameter::target(unit), TraceParameter::se_mask(mask)];
    all.extend(TraceParameter::buffer_size(16 << 20));
    all.extend(parameters);
    let (sink, chunks) = record_stream(64, Overflow::DropNewest);
    let agent = TracedAgent {
        owner: Arc::clone(&resources.owner),
        agent_handle: bed.gpu(0).agent().handle,
        shape: bed.shape(0),
        config: TraceConfig::from(all),
        memory: bed.memory(0),
        slots: Arc::clone(&resources.slots) as _,
    };
    let service = DispatchTrace::new(DispatchTraceSetup {
        context: ContextId(1),
        agents: vec![agent],
        programs: Arc::clone(&bed.programs),
        interception: Arc::clone(&bed.interceptor) as _,
        claims: Arc::clone(&bed.claims),
        decide: Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 }),
        serialize_all: false,
        delivery: Delivery::Stream(sink),
    });
    let service = service.unwrap();
    let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
    let launches = sample.launches().unwrap();
    service.start().unwrap();
    run_sample(bed, &sample);
    service.stop(PATIENCE).unwrap();
    let chunks: Vec<_> = std::iter::from_fn(|| chunks.try_recv()).collect();
    let (dispatches, code) = (dispatches(bed, &launches), loaded(bed, &launches));
    assert!(chunks.iter().all(|chunk| !chunk.flags.lost && !chunk.flags.gpu_buffer_full));
    TracedSample { chunks, dispatches, code }
}

fn run_sample(bed: &Bed, sample: &Sample) {
    let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
    for batch in sample.batches(1).unwrap() {
        queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
    }
}

on_both_faces! {
    fn decoded_instructions_are_those_that_the_waves_walked(bed on TARGETS) {
        let traced = trace_sample(bed, &[TraceParameter::simd_selection(0xF)]);
        assert_eq!(traced.code.len(), 2);
        let mut compared = 0;
        for (chunk, dispatch) in traced.chunks.iter().zip(&traced.dispatches) {
            let all = bed.placement.waves(0, dispatch.dispatch);
            let expected = walked(bed, &on_engine(bed.agent(0), &all, 0), |wave| is_detailed(bed.agent(0), 0, wave));
            let found = relative(decode_walks(&chunk.data, &traced.code));
            assert_eq!(found, relative(expected), "{:#x}", dispatch.kernel_object);
            compared += found.iter().map(|wave| wave.2.len()).sum::<usize>();
        }
        assert!(compared > 100, "only {compared} instructions were compared");
    }

    fn each_engine_of_the_mask_shows_the_selected_unit_in_detail(bed on TARGETS) {
        const ENGINES: [u32; 2] = [1, 3];
        const UNIT: u8 = 2;
        let traced = trace_unit(bed, (0b1010, UNIT.into()), &[TraceParameter::simd_selection(0xF)]);
        assert_eq!(traced.chunks.len(), traced.dispatches.len() * ENGINES.len());
        let mut compared = [0; 2];
        for (chunks, dispatch) in traced.chunks.chunks(ENGINES.len()).zip(&traced.dispatches) {
            let all = bed.placement.waves(0, dispatch.dispatch);
            for ((chunk, engine), compared) in chunks.iter().zip(ENGINES).zip(&mut compared) {
                assert_eq!(chunk.shader_engine, engine);
                let placed = on_engine(bed.agent(0), &all, engine);
                let expected = walked(bed, &placed, |wave| is_detailed(bed.agent(0), UNIT, wave));
                let found = relative(decode_walks(&chunk.data, &traced.code));
                assert_eq!(found, relative(expected), "{:#x}, engine {engine}", dispatch.kernel_object);
                let starts = wavescope_tests::decode(&chunk.data).starts.len();
                assert_eq!(starts, placed.len(), "every wave shows in occupancy");
                *compared += found.iter().map(|wave| wave.2.len()).sum::<usize>();
            }
        }
        assert!(compared.iter().all(|&count| count > 50), "{compared:?} instructions were compared");
    }

    // gfx9 selects SIMDs by a mask, later chips one SIMD by the mask's lowest two bits.
    fn only_the_selected_simds_are_traced_in_detail(bed on TARGETS) {
        let traced = trace_sample(bed, &[TraceParameter::simd_selection(0b0110)]);
        let gfx9 = bed.agent(0).target.major == 9;
        let selected = |wave: &PlacedWave| match gfx9 {
            true => wave.cu == 0 && 0b0110 >> wave.simd & 1 != 0,
            false => (wave.sa, wave.cu / 2, wave.simd) == (0, 0, 2),
        };
        let mut waves = 0;
        for (chunk, dispatch) in traced.chunks.iter().zip(&traced.dispatches) {
            let all = bed.placement.waves(0, dispatch.dispatch);
            let mut expected = walked(bed, &on_engine(bed.agent(0), &all, 0), selected);
            expected.retain(|wave| !wave.2.is_empty());
            let mut found = decode_walks(&chunk.data, &traced.code);
            found.retain(|wave| !wave.2.is_empty());
            let found = relative(found);
            assert_eq!(found, relative(expected), "{:#x}", dispatch.kernel_object);
            waves += found.len();
        }
        assert!(waves > 0, "no wave on the selected SIMDs");
    }

    // Later chips still report what needs no unit: their token mask for this mode leaves it in.
    fn occupancy_mode_shows_waves_without_instructions(bed on ["gfx942", "gfx90a", "gfx950"]) {
        let traced = trace_sample(bed, &[TraceParameter::occupancy_mode(true)]);
        let mut starts = 0;
        for (chunk, dispatch) in traced.chunks.iter().zip(&traced.dispatches) {
            assert!(decode_walks(&chunk.data, &traced.code).iter().all(|wave| wave.2.is_empty()));
            let all = bed.placement.waves(0, dispatch.dispatch);
            let found = wavescope_tests::decode(&chunk.data).starts.len();
            assert_eq!(found, on_engine(bed.agent(0), &all, 0).len(), "{:#x}", dispatch.kernel_object);
            starts += found;
        }
        assert!(starts > 10, "only {starts} waves");
    }

    fn instruction_counters_equal_what_the_waves_walked(bed on TARGETS) {
        let names = ["SQ_WAVES", "SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_SMEM", "SQ_INSTS_FLAT", "SQ_INSTS_LDS"];
        let (records, dispatches) = count_sample(bed, &names);
        let mut all = 0;
        for (record, dispatch) in records.iter().zip(dispatches) {
            let mut walked: HashMap<String, u64> = HashMap::new();
            for wave in bed.placement.waves(0, dispatch.dispatch) {
                let walk = bed.placement.walk(&wave);
                assert_eq!(walk.stopped, None);
                walk.instructions.into_iter().for_each(|(kind, count)| *walked.entry(kind).or_default() += count);
            }
            let flat = walked["flat_read"] + walked["flat_write"];
            let expected = [walked["valu"], walked["salu"], walked["smem"], flat, walked["lds"]];
            let found: Vec<u64> = names[1..].iter().map(|name| total(record, name) as u64).collect();
            assert_eq!(found, expected, "{:?}", dispatch.grid);
            all += expected.iter().sum::<u64>();
        }
        assert!(all > 10_000, "only {all} instructions");
    }

    // The kinds that the MI200 and MI300 counter documentation gives a meaning, beyond those of all chips.
    fn instruction_kinds_of_gfx9_equal_what_the_waves_walked(bed on ["gfx942", "gfx90a", "gfx950"]) {
        let names = [
            "SQ_INSTS", "SQ_INSTS_VMEM", "SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR", "SQ_INSTS_BRANCH",
            "SQ_INSTS_SENDMSG", "SQ_INSTS_MFMA",
        ];
        let (records, dispatches) = count_sample(bed, &names);
        for (record, dispatch) in records.iter().zip(dispatches) {
            let mut expected = [0; 7];
            for wave in bed.placement.waves(0, dispatch.dispatch) {
                let walk = bed.placement.walk(&wave).instructions;
                let whole = ["valu", "salu", "smem", "vmem_read", "vmem_write", "lds", "branch", "message", "immediate", "end", "other"];
                let sums = [
                    &whole[..], &["vmem_read", "vmem_write"], &["vmem_read"], &["vmem_write"], &["branch"],
                    &["message", "end"], &["matrix"],
                ];
                for (sum, kinds) in expected.iter_mut().zip(sums) {
                    *sum += kinds.iter().map(|kind| walk[*kind]).sum::<u64>();
                }
            }
            let found = names.map(|name| total(record, name) as u64);
            assert_eq!(found, expected, "{:?}", dispatch.grid);
            assert!(found[0] > 0);
        }
    }

    fn memory_requests_are_counted_on_the_unit_where_they_ran(bed on ["gfx942", "gfx90a", "gfx950"]) {
        let (records, dispatches) = count_sample(bed, &["TA_FLAT_READ_WAVEFRONTS", "TA_FLAT_WRITE_WAVEFRONTS"]);
        let mut all = 0;
        for (record, dispatch) in records.iter().zip(dispatches) {
            // Reads and writes of (XCC, engine, unit).
            let mut found: HashMap<(u32, u32, u32), [u64; 2]> = HashMap::new();
            for value in &record.records {
                let at = &value.position;
                let place = (at.xcc.into(), at.shader_engine.into(), at.instance.into());
                let name = Catalogue::name_of(value.counter).unwrap();
                found.entry(place).or_default()[usize::from(name.contains("WRITE"))] += value.value as u64;
            }
            let mut expected: HashMap<_, [u64; 2]> = found.keys().map(|place| (*place, [0, 0])).collect();
            for wave in bed.placement.waves(0, dispatch.dispatch) {
                let walk = bed.placement.walk(&wave).instructions;
                let sums = expected.get_mut(&(wave.xcc, wave.se, wave.cu.into())).unwrap();
                sums[0] += walk["flat_read"];
                sums[1] += walk["flat_write"] - walk["flat_atomic"];
            }
            assert_eq!(found, expected, "{:?}", dispatch.grid);
            all += found.values().flatten().sum::<u64>();
        }
        assert!(all > 500, "only {all} requests");
    }

    // The compiled kernels have no buffer instructions: three loads, a store and an atomic by hand.
    fn buffer_requests_of_later_chips_are_counted(bed on ["gfx1100", "gfx1201"]) {
        let gfx12 = bed.gpu(0).target() == "gfx1201";
        let known: [(&str, &[u32]); 3] = match gfx12 {
            true => [
                ("buffer_load_b32", &[0xC405_007C, 0x0080_0000, 0]),
                ("buffer_store_b32", &[0xC406_807C, 0x0080_0000, 0]),
                ("buffer_atomic_add_u32", &[0xC40D_407C, 0x0080_0000, 0]),
            ],
            false => [
                ("buffer_load_b32", &[0xE050_0000, 0x8000_0000]),
                ("buffer_store_b32", &[0xE068_0000, 0x8000_0000]),
                ("buffer_atomic_add_u32", &[0xE0D4_0000, 0x8000_0000]),
            ],
        };
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let [load, store, atomic] = known.map(|(name, words)| {
            let found = wavescope_isa::decode(bed.gpu(0).target().parse().unwrap(), &bytes(words)).unwrap();
            assert_eq!((found.mnemonic(), found.size()), (name, words.len() * 4));
            bytes(words)
        });
        let code = [&load[..], &store, &load, &atomic, &load, &bytes(&[0xBFB0_0000])].concat();
        let counted = count(bed, 1, 0, &["TA_BUFFER_LOAD_WAVEFRONTS", "TA_BUFFER_STORE_WAVEFRONTS"]);
        counted.service.start().unwrap();
        let kernel = run_code(bed, &code, 100_000, 64);
        counted.service.stop(PATIENCE).unwrap();
        let record = counted.take().pop().unwrap();
        let dispatch = bed.placement.dispatches(0).into_iter().find(|placed| placed.kernel_object == kernel).unwrap();
        // By (engine, compute unit of the engine); several of gfx12's places share a record's.
        let mut found: HashMap<(u32, u32), [u64; 2]> = HashMap::new();
        for value in record.records.iter().filter(|value| value.value > 0.0) {
            let at = &value.position;
            let name = Catalogue::name_of(value.counter).unwrap();
            let place = (at.shader_engine.into(), at.instance.into());
            found.entry(place).or_default()[usize::from(name.contains("STORE"))] += value.value as u64;
        }
        if gfx12 {
            let sums = found.values().fold([0, 0], |sums, counts| [sums[0] + counts[0], sums[1] + counts[1]]);
            assert_eq!(sums, [3 * dispatch.waves, dispatch.waves]);
            return;
        }
        let units = bed.agent(0).compute_units / bed.agent(0).shader_engines / 2;
        let mut expected: HashMap<_, [u64; 2]> = HashMap::new();
        for wave in bed.placement.waves(0, dispatch.dispatch) {
            let place = (wave.se, u32::from(wave.sa) * units + u32::from(wave.cu));
            let sums = expected.entry(place).or_default();
            (sums[0], sums[1]) = (sums[0] + 3, sums[1] + 1);
        }
        assert_eq!(found, expected);
    }

    // SQ_INSTS_VALU, SQ_INSTS_SALU, SQ_WAVES and three that make a second bank, sampled on every compute unit.
    fn performance_samples_add_up_to_what_the_waves_walked(bed on ["gfx942", "gfx90a", "gfx950"]) {
        let events: [(u32, &str); 5] = match bed.gpu(0).target() {
            "gfx90a" => [(26, "valu"), (56, "salu"), (57, "smem"), (64, "branch"), (60, "lds")],
            "gfx942" => [(26, "valu"), (60, "salu"), (61, "smem"), (69, "branch"), (65, "lds")],
            _ => [(26, "valu"), (62, "salu"), (63, "smem"), (71, "branch"), (67, "lds")],
        };
        let mut parameters = vec![TraceParameter::perfcounter_ctrl(7)];
        parameters.extend(events.iter().map(|(event, _)| TraceParameter::perfcounter(*event, 0xF)));
        let traced = trace_sample(bed, &parameters);
        let (mut samples, mut all) = (0, 0);
        for (chunk, dispatch) in traced.chunks.iter().zip(&traced.dispatches) {
            // By compute unit and counter.
            let mut found: HashMap<(u8, usize), u64> = HashMap::new();
            let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
            let outcome = decoder.decode(&chunk.data, &mut |record: Record<'_>| {
                let Record::PerfEvents(events) = record else { return };
                for event in events {
                    samples += 1;
                    for (index, value) in event.events.iter().enumerate() {
                        let counter = usize::from(event.bank) * 4 + index;
                        *found.entry((event.cu, counter)).or_default() += u64::from(*value);
                    }
                }
            });
            outcome.unwrap();
            found.retain(|_, sum| *sum > 0);
            let mut expected: HashMap<(u8, usize), u64> = HashMap::new();
            for wave in on_engine(bed.agent(0), &bed.placement.waves(0, dispatch.dispatch), 0) {
                let walk = bed.placement.walk(&wave).instructions;
                for (counter, (_, kind)) in events.iter().enumerate() {
                    *expected.entry((wave.cu, counter)).or_default() += walk[*kind];
                }
            }
            expected.retain(|_, sum| *sum > 0);
            assert_eq!(found, expected, "{:?}", dispatch.grid);
            all += found.values().sum::<u64>();
        }
        assert!(samples > 40 && all > 500, "only {samples} samples of {all} instructions");
    }
}

/// What a decoder finds in a trace besides waves.
#[derive(Default)]
struct Rest {
    losses: usize,
    data_lost: bool,
    clocks: Vec<(i64, u64)>,
}

fn rest(data: &[u8]) -> Rest {
    let mut rest = Rest::default();
    let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Event(event) if event.kind == EventKind::PacketLoss => rest.losses += 1,
        Record::Info(Info::DataLost) => rest.data_lost = true,
        Record::Realtime(samples) => {
            rest.clocks.extend(samples.iter().map(|sample| (sample.shader_clock, sample.realtime_clock)));
        }
        _ => {}
    });
    outcome.unwrap();
    rest
}

#[test]
fn lost_tokens_are_told_where_they_were_lost() {
    for target in TARGETS {
        println!("{target}");
        let loss = Fault::LoseTrace(TraceLoss { after: 25, events: 7 });
        let bed = Bed::with_faults(target, Technique::Doorbell, FaultPlan { faults: vec![loss] });
        let resources = bed.resources(0);
        let what = What { buffer_bytes: 8 << 20, ..What::of_context(1) };
        let traces = device_trace(&bed, &resources, what).unwrap();
        let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
        traces.service.start().unwrap();
        run_sample(&bed, &sample);
        traces.service.stop().unwrap();
        let found = rest(&traces.take()[0].data);
        assert_eq!((found.losses, found.data_lost), (1, true));
    }
}

on_both_faces! {
    // gfx9 has clock samples in the marker words that software writes at start and stop, later chips in the stream.
    fn clock_samples_run_at_the_devices_rate(bed on TARGETS) {
        let resources = bed.resources(0);
        let what = What { buffer_bytes: 8 << 20, ..What::of_context(1) };
        let traces = device_trace(bed, &resources, what).unwrap();
        let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
        traces.service.start().unwrap();
        run_sample(bed, &sample);
        traces.service.stop().unwrap();
        let clocks = rest(&traces.take()[0].data).clocks;
        assert!(clocks.len() > 1, "{clocks:?}");
        let (first, last) = (clocks[0], clocks[clocks.len() - 1]);
        let (cycles, ticks) = ((last.0 - first.0) as f64, (last.1 - first.1) as f64);
        let per_tick = f64::from(bed.agent(0).max_engine_clock_mhz / 100);
        assert!((cycles / ticks / per_tick - 1.0).abs() < 0.01, "{cycles} cycles in {ticks} ticks, {per_tick}");
    }
}
