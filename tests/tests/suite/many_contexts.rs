//! Four hundred contexts trace one agent in turn: one set of resources, and every context gets its own data.

use std::sync::Arc;

use wavescope_att_resources::Decision;
use wavescope_hsa_intercept::Technique;
use wavescope_tests::{Bed, PATIENCE, What, decode, on_both_faces, on_engine, trace};

use crate::run::{batch, launch};

/// Contexts. Fewer with the runtime's intercept queues, whose event thread takes a processor for itself.
fn contexts(bed: &Bed) -> u64 {
    if bed.interceptor.technique() == Some(Technique::Runtime) { 40 } else { 400 }
}

/// A launch that reaches every compute unit of the device: 608 work-groups of one wave on 304 units.
const GRID: [u32; 3] = [608 * 64, 1, 1];

on_both_faces! {
    fn four_hundred_contexts_trace_in_turn_and_each_gets_its_engines_and_unit(bed on ["gfx942"]) {
        let agent = bed.agent(0);
        let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
        let resources = bed.resources(0);
        let contexts: Vec<_> = (0..contexts(bed))
            .map(|context| {
                let what = What {
                    context,
                    gpu: 0,
                    buffer_bytes: if context % 2 == 0 { 2 << 20 } else { 1 << 20 },
                    se_mask: if context % 3 == 0 { 3 } else { 1 },
                    target_cu: (context % 8) as u32,
                };
                let decide = Arc::new(move |_: &_| Decision::StartAndStop { user_data: context });
                (what, trace(bed, &resources, what, decide).unwrap())
            })
            .collect();
        for (what, traces) in &contexts {
            traces.service.start().unwrap();
            let submission = queue.submit(&batch([launch(bed, 0, GRID, [64, 1, 1])])).unwrap();
            submission.wait(PATIENCE).unwrap();
            traces.service.stop(PATIENCE).unwrap();
            let chunks = traces.take();
            let engines: Vec<u32> = chunks.iter().map(|chunk| chunk.shader_engine).collect();
            assert_eq!(engines, if what.se_mask == 3 { vec![0, 1] } else { vec![0] }, "{what:?}");
            let dispatch = bed.placement.dispatches(0).last().cloned().unwrap();
            let placed = bed.placement.waves(0, dispatch.dispatch);
            for chunk in chunks {
                assert_eq!((chunk.user_data, chunk.flags.lost), (what.context, false), "{what:?}");
                let placed = on_engine(agent, &placed, chunk.shader_engine);
                let target = placed.iter().filter(|wave| u32::from(wave.cu) == what.target_cu).count();
                let decoded = decode(&chunk.data);
                assert_eq!((decoded.starts.len(), decoded.waves.len()), (placed.len(), target), "{what:?}");
                let on_target = decoded.waves.iter().all(|(_, place)| u32::from(place.0) == what.target_cu);
                assert!(on_target, "{what:?}");
                assert!(target > 0, "{what:?}: nothing ran on the unit, so nothing was compared");
            }
        }
        assert_eq!(resources.made(), (1, 1), "one queue and one slot for all");
        drop(contexts);
        let report = resources.owner.shutdown().unwrap();
        assert!(report.cut_short.is_empty() && report.leaked.is_empty(), "{report:?}");
    }
}
