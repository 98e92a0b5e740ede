//! The installed packet library and ours over the same memory, on the real runtime: the same bytes, and what one's packets
//! write the other reads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use wavescope_aql_profile::{
    Builtin, Choice, CodeObjectMarker, CounterInstance, Event, Memory, Native, PacketPrograms, Status,
    TraceConfig, TraceInstance, TraceParameter,
};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_counting::Catalogue;
use wavescope_hsa_intercept::Technique;
use wavescope_pm4::BlockId;
use wavescope_tests::{Bed, PATIENCE, TARGETS, Twin, Way, decode, on_engine, on_rocr, place, waves};
use wavescope_workload::{Batch, Dependency};

use crate::run::launch;

const GRID: [u32; 3] = [192 * 37 + 70, 3, 1];
const GROUP: [u16; 3] = [192, 2, 1];

fn on_runtime(test: &str, check: impl Fn(&Bed)) {
    let way = Way { technique: Technique::Doorbell, programs: Choice::Native };
    on_rocr(module_path!(), test, &TARGETS, way, check);
}

/// Runs one kernel between packets.
fn run(bed: &Bed, before: &[AqlPacket], after: &[AqlPacket]) {
    let vendor = |packet: &AqlPacket| {
        let mut packet = *packet;
        packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, true, Fence::System, Fence::System));
        packet
    };
    let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
    let over = bed.application.signal(1).unwrap();
    let mut batch = Batch::new();
    for packet in before {
        batch.packet(vendor(packet));
    }
    batch.launch(launch(bed, 0, GRID, GROUP));
    for packet in after {
        batch.packet(vendor(packet));
    }
    batch.barrier(Dependency::All, &[], Some(&over));
    queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
    over.wait_below(1, PATIENCE).unwrap();
    queue.health().unwrap();
}

/// The same thing made twice over one memory.
struct Pair<I: ?Sized> {
    ours: Box<I>,
    theirs: Box<I>,
    memory: Arc<Twin>,
}

/// Has the library and then ours make the same; both must leave the same bytes in memory. Those that stay are ours.
fn both<I: ?Sized>(bed: &Bed, make: impl Fn(&dyn PacketPrograms, &Arc<dyn Memory>) -> Box<I>) -> Pair<I> {
    let first = Twin::new(bed.memory(0));
    let theirs = make(&*bed.programs, &(Arc::clone(&first) as _));
    let written = first.contents();
    assert!(written.iter().flatten().any(|byte| *byte != 0), "nothing was written");
    first.clear();
    let again = first.again();
    let ours = make(&Builtin, &(Arc::clone(&again) as _));
    assert_eq!(first.allocations(), again.allocations());
    assert!(written == first.contents(), "the bytes differ");
    Pair { ours, theirs, memory: first }
}

/// Counters of several blocks, in all instances of each.
fn events(bed: &Bed) -> Vec<Event> {
    let shape = bed.shape(0);
    let chip = shape.chip().unwrap();
    let catalogue = Catalogue::of(bed.agent(0).target).unwrap();
    let names = ["SQ_WAVES", "SQ_BUSY_CYCLES", "GRBM_COUNT", "GRBM_GUI_ACTIVE", "TCP_TOTAL_CACHE_ACCESSES"];
    let names = names.iter().filter_map(|name| catalogue.base(name));
    let events = names.flat_map(|counter| {
        let block = chip.target.block_named(counter.block).unwrap();
        (0..block.instances.min(4))
            .map(|instance| Event::new(block.id, counter.event as u32).with_instance(instance))
    });
    events.collect()
}

fn values(instance: &dyn CounterInstance) -> Vec<(u32, u64, u64)> {
    let mut values = Vec::new();
    let read = instance.iterate(&mut |sample, value| {
        values.push((sample.event, sample.counter_id, value));
        ControlFlow::Continue(())
    });
    read.unwrap();
    values
}

#[test]
fn counters_of_either_maker_are_read_by_both_as_the_geometry_says() {
    on_runtime("counters_of_either_maker_are_read_by_both_as_the_geometry_says", |bed| {
        let shape = bed.shape(0);
        let events = events(bed);
        assert!(events.len() >= 4, "{events:?}");
        let Pair { theirs, ours, .. } = both(bed, |programs, memory| {
            programs.counters(&shape, &events).unwrap().instance(memory).unwrap()
        });
        for (theirs, ours) in
            [(theirs.start(), ours.start()), (theirs.read(), ours.read()), (theirs.stop(), ours.stop())]
        {
            assert_eq!(theirs, ours);
        }
        for instance in [&theirs, &ours] {
            instance.clear();
            run(bed, &[instance.start()], &[instance.read(), instance.stop()]);
            let found = values(&*theirs);
            assert_eq!(found, values(&*ours));
            let mut sums = BTreeMap::<_, u64>::new();
            for (event, _, value) in found {
                *sums.entry((events[event as usize].block, events[event as usize].id)).or_default() += value;
            }
            let wave_size = u64::from(bed.agent(0).wave_size);
            assert_eq!(sums[&(BlockId::SQ, 4)], waves(GRID, GROUP, wave_size));
            // GRBM_COUNT and GRBM_GUI_ACTIVE.
            let (all, busy) = (sums[&(BlockId::GRBM, 0)], sums[&(BlockId::GRBM, 2)]);
            assert!(0 < busy && busy <= all, "busy for {busy} of {all}");
        }
    });
}

/// Configurations of traces: masks of one and several engines, modes, and on gfx9 counters in the trace.
fn configurations(bed: &Bed) -> Vec<TraceConfig> {
    let base = |mask| {
        let mut parameters = vec![TraceParameter::target(1), TraceParameter::se_mask(mask)];
        parameters.extend(TraceParameter::buffer_size(2 << 20));
        parameters
    };
    let with = |more: &[TraceParameter]| [base(1), more.to_vec()].concat();
    let mut all = vec![
        base(1),
        base(0b1101),
        with(&[TraceParameter::simd_selection(2)]),
        with(&[TraceParameter::occupancy_mode(true)]),
        with(&[TraceParameter::rt_timestamp(false)]),
    ];
    if bed.agent(0).target.major == 9 {
        let counters = [
            TraceParameter::perfcounter_mask(u32::MAX),
            TraceParameter::perfcounter_ctrl(3),
            TraceParameter::perfcounter(4, 0xF),
            TraceParameter::perfcounter(26, 0xF),
        ];
        all.push(with(&counters));
    }
    all.into_iter().map(TraceConfig::from).collect()
}

/// Status and data of each engine.
fn data(instance: &dyn TraceInstance) -> (Status, Vec<(u32, Vec<u8>)>) {
    let mut data = Vec::new();
    let status = instance.iterate(&mut |engine, bytes| data.push((engine, bytes.to_vec())));
    (status, data)
}

const MARKER: CodeObjectMarker = CodeObjectMarker {
    id: 0x77,
    address: 0x7F12_3456_7000,
    bytes: 0x1_2345_6000,
    unload: false,
    from_start: true,
};

#[test]
fn traces_of_either_maker_are_read_by_both_as_the_placement_log_says() {
    on_runtime("traces_of_either_maker_are_read_by_both_as_the_placement_log_says", |bed| {
        let (agent, shape) = (bed.agent(0), bed.shape(0));
        for config in configurations(bed) {
            let Pair { theirs, ours, memory } = both(bed, |programs, memory| {
                programs.trace(&shape, &config).unwrap().instance(memory).unwrap()
            });
            assert_eq!((theirs.start(), theirs.stop()), (ours.start(), ours.stop()), "{config:?}");
            // From gfx10 on, the library's token mask of occupancy mode leaves out what software writes into the trace, and
            // that of gfx12 by the header's bits waves as well (0x7FF, `gc_12_0_0_sh_mask.h`).
            let occupancy = config.parameters.contains(&TraceParameter::occupancy_mode(true));
            let has_markers = !occupancy || agent.target.major == 9;
            let has_waves = !occupancy || agent.target.major < 12;
            let markers = both(bed, |programs, memory| programs.marker(&shape, &MARKER, memory).unwrap());
            assert_eq!(markers.theirs.packet(), markers.ours.packet());
            for instance in [&theirs, &ours] {
                let (control, bytes) = instance.control();
                memory.store(control, &vec![0; bytes as usize]);
                run(bed, &[instance.start(), markers.ours.packet()], &[instance.stop()]);
                let (status, found) = data(&*theirs);
                assert!(status.is_success(), "{status:?}");
                assert_eq!((status, &found), (data(&*ours).0, &data(&*ours).1), "{config:?}");
                let dispatch = bed.placement.dispatches(0).last().cloned().unwrap();
                let all = bed.placement.waves(0, dispatch.dispatch);
                for (engine, bytes) in found {
                    let decoded = decode(&bytes);
                    let starts: Vec<_> = decoded.starts.iter().map(|start| start.1).collect();
                    let placed = on_engine(agent, &all, engine);
                    assert!(!placed.is_empty());
                    let wanted = placed.iter().filter(|_| has_waves).map(|wave| place(agent, wave));
                    let wanted: Vec<_> = wanted.collect();
                    assert_eq!(starts, wanted, "engine {engine}, {config:?}");
                    let announced = if has_markers { vec![MARKER.id] } else { vec![] };
                    assert_eq!(decoded.code_objects, announced, "engine {engine}, {config:?}");
                }
            }
        }
    });
}

#[test]
fn markers_of_all_kinds_are_the_same_bytes() {
    on_runtime("markers_of_all_kinds_are_the_same_bytes", |bed| {
        let shape = bed.shape(0);
        let kinds = [
            MARKER,
            CodeObjectMarker { unload: true, ..MARKER },
            CodeObjectMarker { from_start: false, ..MARKER },
            CodeObjectMarker { id: 1 << 30, ..MARKER },
            CodeObjectMarker { id: u64::MAX, unload: true, from_start: false, ..MARKER },
        ];
        for kind in kinds {
            let Pair { theirs, ours, .. } =
                both(bed, |programs, memory| programs.marker(&shape, &kind, memory).unwrap());
            assert_eq!(theirs.packet(), ours.packet(), "{kind:?}");
        }
        assert!(bed.programs.origin().starts_with(Native::LIBRARY));
    });
}
