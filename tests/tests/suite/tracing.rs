//! Traces against the placement log.

use std::sync::Arc;

use wavescope_att_resources::Decision;
use wavescope_tests::{
    Bed, PATIENCE, Place, PlacedWave, TARGETS, What, decode, is_detailed, on_both_faces, on_engine, place,
    trace,
};

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

on_both_faces! {
    fn traced_waves_equal_the_placement_log_in_number_place_and_order(bed on TARGETS) {
        let agent = bed.agent(0);
        let resources = bed.owner(0);
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
