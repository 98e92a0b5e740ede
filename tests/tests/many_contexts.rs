//! Four hundred contexts trace one agent in turn: one set of resources, and every context gets its own data.

use std::sync::Arc;
use std::time::Duration;

use wavescope_att_decode::{CodeObjects, Decoder, Options, Record};
use wavescope_att_resources::{AgentOwner, Decision, HsaDevice, Limits};
use wavescope_tests::{Bed, What, trace};
use wavescope_workload::{Batch, Launch, kernels};

const CONTEXTS: u64 = 400;
const PATIENCE: Duration = Duration::from_secs(10);

/// A launch that reaches every compute unit of the device: 1,024 work-groups of one wave on 304 units.
const GRID: [u32; 3] = [1024 * 64, 1, 1];

/// Starts and detailed waves of a chunk, and whether all detailed waves ran on `cu`.
fn decode(chunk: &[u8], cu: u8) -> (usize, usize, bool) {
    let (mut starts, mut detailed, mut on_target) = (0, 0, true);
    let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
    let result = decoder.decode(chunk, &mut |record: Record<'_>| match record {
        Record::Occupancy(records) => starts += records.iter().filter(|record| record.is_start()).count(),
        Record::Wave(wave) => {
            detailed += 1;
            on_target &= wave.cu == cu;
        }
        _ => {}
    });
    assert_eq!(result, Ok(()));
    (starts, detailed, on_target)
}

#[test]
fn four_hundred_contexts_trace_in_turn_and_each_gets_its_engines_and_unit() {
    let bed = Bed::new("gfx942", 1);
    let agent = bed.agent(0);
    let module = bed.application.load(bed.gpu(0), kernels::vectors("gfx942").unwrap()).unwrap();
    let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
    let device = HsaDevice::new(bed.interceptor.hsa().clone(), agent.id);
    let slots = device.slots();
    let owner = AgentOwner::new(agent.id, Box::new(device), Limits { patience: PATIENCE, traces: 8 });
    let contexts: Vec<_> = (0..CONTEXTS)
        .map(|context| {
            let what = What {
                context,
                buffer_bytes: if context % 2 == 0 { 2 << 20 } else { 1 << 20 },
                se_mask: if context % 3 == 0 { 3 } else { 1 },
                target_cu: (context % 8) as u32,
            };
            let decide = Arc::new(move |_: &_| Decision::StartAndStop { user_data: context });
            (what, trace(&bed, agent, &owner, &slots, what, decide).unwrap())
        })
        .collect();
    for (what, traces) in &contexts {
        traces.service.start().unwrap();
        let mut batch = Batch::new();
        batch.launch(Launch::new(module.kernel("empty").unwrap(), GRID, [64, 1, 1]));
        queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
        traces.service.stop(PATIENCE).unwrap();
        let chunks: Vec<_> = std::iter::from_fn(|| traces.chunks.try_recv()).collect();
        let engines: Vec<u32> = chunks.iter().map(|chunk| chunk.shader_engine).collect();
        assert_eq!(engines, if what.se_mask == 3 { vec![0, 1] } else { vec![0] }, "{what:?}");
        let dispatch = bed.placement.dispatches(0).last().copied().unwrap();
        for chunk in chunks {
            assert_eq!((chunk.user_data, chunk.flags.lost), (what.context, false), "{what:?}");
            // Engines 0 and 1 are engines 0 and 1 of the first XCC.
            let placed = bed.placement.waves(0, dispatch.dispatch);
            let placed =
                placed.iter().filter(|wave| wave.xcc == 0 && u32::from(wave.se) == chunk.shader_engine);
            let target = placed.clone().filter(|wave| u32::from(wave.cu) == what.target_cu).count();
            let (starts, detailed, on_target) = decode(&chunk.data, what.target_cu as u8);
            assert_eq!((starts, detailed), (placed.count(), target), "{what:?}");
            assert!(on_target, "{what:?}");
            assert!(detailed > 0, "{what:?}: nothing ran on the unit, so nothing was compared");
        }
    }
    drop(contexts);
    let report = owner.shutdown().unwrap();
    assert!(report.cut_short.is_empty() && report.leaked.is_empty(), "{report:?}");
}
