//! Traces against the placement log.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use wavescope_att_decode::Pc;
use wavescope_att_resources::Decision;
use wavescope_isa::CodeObject;
use wavescope_tests::{
    Bed, PATIENCE, Place, PlacedWave, TARGETS, What, decode, device_trace, is_detailed, on_both_faces,
    on_engine, place, trace,
};
use wavescope_workload::sample::Sample;
use wavescope_workload::{Launch, kernels};

use crate::run::{launch, run};

/// Times from the first on, and waves of one clock in order of place: a stream may have them in any.
fn relative(waves: impl IntoIterator<Item = (u64, Place)>) -> Vec<(u64, Place)> {
    let mut waves: Vec<_> = waves.into_iter().collect();
    let first = waves.iter().map(|wave| wave.0).min().unwrap_or(0);
    waves.iter_mut().for_each(|wave| wave.0 -= first);
    assert!(waves.is_sorted_by_key(|wave| wave.0), "the stream goes back in time");
    waves.sort();
    waves
}

/// Ends are not delivered in the order of the log, which is that of starts.
fn ends(bed: &Bed, placed: &[PlacedWave]) -> Vec<(u64, Place)> {
    let mut ends: Vec<_> = placed.iter().map(|wave| (wave.end, place(bed.agent(0), wave))).collect();
    ends.sort();
    ends
}

/// First instructions of the kernels that are launched, by the address of their descriptors: where the descriptor in the
/// file says, in whichever loaded code object that lies.
fn entries(bed: &Bed, launches: &[Launch]) -> HashMap<u64, Pc> {
    let target = bed.gpu(0).target();
    let files = [kernels::vectors(target).unwrap(), kernels::tiles(target).unwrap()];
    let files = files.map(|file| CodeObject::parse(file).unwrap());
    let loaded = bed.interceptor.code_objects();
    let entry = |launch: &Launch| {
        let mut known = files.iter().flat_map(CodeObject::kernels);
        let kernel = known.find(|kernel| kernel.name == launch.name()).unwrap();
        let entry = launch.kernel_object().wrapping_add_signed(kernel.descriptor.entry_offset());
        let mut around = loaded.iter().map(|code| code.loaded);
        let code = around.find(|code| (code.base..code.base + code.size).contains(&entry)).unwrap();
        (launch.kernel_object(), Pc { code_object_id: code.id.0, address: entry - code.base })
    };
    launches.iter().map(entry).collect()
}

on_both_faces! {
    fn every_traced_wave_names_the_entry_of_its_kernel(bed on TARGETS) {
        let resources = bed.resources(0);
        let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
        let traces = trace(bed, &resources, What::of_context(1), decide).unwrap();
        let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
        for code in bed.interceptor.code_objects() {
            traces.service.code_object_loaded(&code.loaded).unwrap();
        }
        let launches = sample.launches().unwrap();
        let entries = entries(bed, &launches);
        traces.service.start().unwrap();
        let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
        for batch in sample.batches(1).unwrap() {
            queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
        }
        traces.service.stop(PATIENCE).unwrap();
        // The real runtime fills buffers by kernels of its own.
        let (chunks, mut dispatches) = (traces.take(), bed.placement.dispatches(0));
        dispatches.retain(|dispatch| entries.contains_key(&dispatch.kernel_object));
        assert_eq!((chunks.len(), dispatches.len()), (launches.len(), launches.len()));
        let mut seen = BTreeSet::new();
        for (chunk, dispatch) in chunks.iter().zip(dispatches) {
            let entry = entries[&dispatch.kernel_object];
            for found in decode(&chunk.data).entries {
                assert_eq!(found, entry, "{:#x}", dispatch.kernel_object);
                seen.insert(found);
            }
        }
        assert!(seen.len() > 3, "{seen:?}");
    }

    fn device_trace_has_every_wave_between_start_and_stop_of_all_queues(bed on TARGETS) {
        let agent = bed.agent(0);
        let resources = bed.resources(0);
        let what = What { se_mask: 0b1010, buffer_bytes: 8 << 20, ..What::of_context(7) };
        let traces = device_trace(bed, &resources, what).unwrap();
        let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
        let queues = [(); 2].map(|()| bed.application.queue(bed.gpu(0), 64).unwrap());
        let work = || {
            let batches = sample.batches(2).unwrap();
            let submitted = queues.iter().zip(batches).map(|(queue, batch)| queue.submit(&batch).unwrap());
            submitted.collect::<Vec<_>>().into_iter().for_each(|submission| drop(submission.wait(PATIENCE).unwrap()));
        };
        let launches = sample.launches().unwrap();
        let entries = entries(bed, &launches);
        for round in 0..2 {
            work(); // not traced
            let before = bed.placement.dispatches(0).len();
            traces.service.start().unwrap();
            for code in bed.interceptor.code_objects().iter().filter(|_| round == 0) {
                traces.service.code_object_loaded(&code.loaded).unwrap();
            }
            work();
            traces.service.stop().unwrap();
            let ran = bed.placement.dispatches(0).split_off(before);
            let ours = ran.iter().filter(|ran| entries.contains_key(&ran.kernel_object));
            assert_eq!(ours.count(), launches.len());
            let all: Vec<_> = ran.iter().flat_map(|ran| bed.placement.waves(0, ran.dispatch)).collect();
            let chunks = traces.take();
            assert_eq!(chunks.len(), 2);
            for (chunk, engine) in chunks.iter().zip([1, 3]) {
                assert_eq!((chunk.shader_engine, chunk.dispatch, chunk.user_data), (engine, None, 7));
                let decoded = decode(&chunk.data);
                let placed = on_engine(agent, &all, engine);
                assert!(placed.len() > 10, "only {} waves ran", placed.len());
                let starts = placed.iter().map(|wave| (wave.start, place(agent, wave)));
                assert_eq!(relative(decoded.starts), relative(starts), "{round}, engine {engine}");
                assert_eq!(relative(decoded.ends), relative(ends(bed, &placed)), "{round}, engine {engine}");
                // Kernels of the runtime itself, for fills, lie in no code object that was announced.
                let mut found = decoded.entries.iter().filter(|entry| entry.code_object_id != 0);
                assert!(found.all(|entry| entries.values().any(|known| known == entry)));
                assert!(entries.values().any(|entry| decoded.entries.contains(entry)));
            }
        }
        assert_eq!(traces.service.summary().delivered, 2);
    }

    fn traced_waves_equal_the_placement_log_in_number_place_and_order(bed on TARGETS) {
        let agent = bed.agent(0);
        let resources = bed.resources(0);
        let what = What { se_mask: 0b1001, target_cu: 1, ..What::of_context(1) };
        let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 5 });
        let traces = trace(bed, &resources, what, decide).unwrap();
        traces.service.start().unwrap();
        // A work-group or two, a partial one, and more waves than fit at once.
        let shapes = [([256, 1, 1], [128, 1, 1]), ([3000, 1, 1], [64, 1, 1]), ([150_000, 3, 1], [256, 1, 1])];
        run(bed, 0, shapes.map(|(grid, workgroup)| launch(bed, 0, grid, workgroup)));
        traces.service.stop(PATIENCE).unwrap();
        let chunks = traces.take();
        let dispatches = bed.placement.dispatches(0);
        assert_eq!((chunks.len(), dispatches.len()), (2 * shapes.len(), shapes.len()));
        assert_ne!(chunks[0].data, chunks[2].data, "two dispatches, one engine");
        let (mut compared, mut detailed) = (0, 0);
        for (chunk, index) in chunks.iter().zip(0..) {
            let engine = [0, 3][index % 2];
            assert_eq!((chunk.shader_engine, chunk.user_data), (engine, 5));
            assert!(!chunk.flags.lost && !chunk.flags.gpu_buffer_full, "{:?}", chunk.flags);
            let all = bed.placement.waves(0, dispatches[index / 2].dispatch);
            let placed = on_engine(agent, &all, engine);
            let decoded = decode(&chunk.data);
            let starts = |waves: &[PlacedWave]| -> Vec<(u64, Place)> {
                waves.iter().map(|wave| (wave.start, place(agent, wave))).collect()
            };
            assert_eq!(relative(decoded.starts), relative(starts(&placed)), "engine {engine}");
            assert_eq!(relative(decoded.ends), relative(ends(bed, &placed)), "engine {engine}");
            let mut on_unit = placed.clone();
            on_unit.retain(|wave| is_detailed(agent, what.target_cu as u8, wave));
            // Waves are delivered when they end.
            let mut found = decoded.waves;
            found.sort();
            assert_eq!(relative(found), relative(starts(&on_unit)), "engine {engine}");
            (compared, detailed) = (compared + placed.len(), detailed + on_unit.len());
        }
        assert!(compared > 400 && detailed > 10, "only {compared} waves were compared, {detailed} in detail");
    }
}
