//! Traces through several buffers that take turns: one after the other, the buffers hold what one large buffer would.

#![cfg(test)]

use std::sync::Arc;

use wavescope_aql_profile::{
    BufferPackets, Builtin, Memory, PacketPrograms, TraceConfig, TraceInstance, TraceParameter,
};
use wavescope_att_decode::{CodeObjects, Decoder, EventKind, Options, Record};
use wavescope_core::AqlPacket;
use wavescope_hsa_intercept::Technique;
use wavescope_software_gpu::{Fault, FaultPlan, Harvest};
use wavescope_tests::{
    Bed, PATIENCE, PlacedWave, decode_walks, is_detailed, loaded, on_engine, relative, walked,
};
use wavescope_workload::sample::Sample;
use wavescope_workload::{Batch, Launch, Queue};

/// Chips whose hardware can change buffers while it traces, as far as the packet program knows.
const TARGETS: [&str; 4] = ["gfx942", "gfx90a", "gfx950", "gfx1201"];
/// The smallest that the packet program takes.
const BUFFER_BYTES: u64 = 128 << 10;
/// The engine of a trace.
const SE: u32 = 0;

/// A trace of one engine with so many buffers, and what its packets run on.
struct Ring {
    instance: Box<dyn TraceInstance>,
    packets: BufferPackets,
    memory: Arc<dyn Memory>,
    queue: Queue,
    /// What was read so far.
    data: Vec<u8>,
    turns: usize,
    too_late: bool,
}

impl Ring {
    fn start(bed: &Bed, buffers: u32) -> Self {
        let mut parameters = vec![
            TraceParameter::target(0),
            TraceParameter::se_mask(1 << SE),
            TraceParameter::simd_selection(0xF),
        ];
        parameters.extend(TraceParameter::buffer_size(BUFFER_BYTES));
        let memory = bed.memory(0);
        let program = Builtin.trace(&bed.shape(0), &TraceConfig { parameters, buffers }).unwrap();
        let mut instance = program.instance(&memory).unwrap();
        let packets = instance.buffer_packets(SE).unwrap();
        let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
        let ring = Self { instance, packets, memory, queue, data: Vec::new(), turns: 0, too_late: false };
        ring.run(bed, ring.instance.start());
        ring
    }

    /// Runs a packet and waits for it.
    fn run(&self, bed: &Bed, mut packet: AqlPacket) {
        let signal = bed.application.signal(1).unwrap();
        packet.set_completion_signal(signal.handle().handle);
        let mut batch = Batch::new();
        batch.packet(packet);
        self.queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
        assert_eq!(signal.wait_below(1, PATIENCE).unwrap(), 0);
    }

    /// Looks at the engine, and takes a buffer that is full.
    fn poll(&mut self, bed: &Bed) {
        self.run(bed, self.packets.query);
        let status = self.instance.buffer_status(SE).unwrap();
        self.too_late |= status.is_too_late;
        if status.needs_swap {
            self.read(status.data, status.bytes);
            self.run(bed, self.packets.swaps[status.swaps as usize % self.packets.swaps.len()]);
            self.turns += 1;
        }
    }

    fn read(&mut self, address: u64, bytes: u64) {
        let at = self.data.len();
        self.data.resize(at + bytes as usize, 0);
        self.memory.copy_out(address, &mut self.data[at..]);
    }

    /// Ends the trace; returns the whole of it as a decoder takes it.
    fn stop(mut self, bed: &Bed) -> Vec<u8> {
        self.run(bed, self.instance.stop());
        let header =
            if self.packets.header == 0 { vec![] } else { self.packets.header.to_le_bytes().to_vec() };
        let mut last = Vec::new();
        self.instance.iterate(&mut |se, bytes| {
            assert_eq!(se, SE);
            last.extend_from_slice(&bytes[header.len()..]);
        });
        self.data.extend(last);
        [header, self.data].concat()
    }
}

/// A machine with the first unit of each shader engine and nothing else, so that buffers fill soon.
fn small(target: &str) -> Bed {
    let positions = (0..8_u8).flat_map(|xcc| (0..8).flat_map(move |se| (0..32).map(move |at| (xcc, se, at))));
    let gone = positions.filter(|(.., at)| *at != 0);
    let harvest = |(xcc, se, at): (u8, u8, u8)| Fault::Harvest(Harvest { xcc, se, sa: at / 16, cu: at % 16 });
    Bed::with_faults(target, Technique::Doorbell, FaultPlan { faults: gone.map(harvest).collect() })
}

/// Runs everything, twice.
fn run_all(queue: &Queue, launches: &[Launch]) {
    let mut batch = Batch::new();
    for launch in launches.iter().chain(launches) {
        batch.launch(launch.clone());
    }
    queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
}

/// Waves on the traced engine of what was launched.
fn traced_waves(bed: &Bed, launches: &[Launch]) -> Vec<PlacedWave> {
    let dispatches = bed.placement.dispatches(0);
    let ours =
        dispatches.iter().filter(|placed| launches.iter().any(|l| l.kernel_object() == placed.kernel_object));
    let waves: Vec<_> = ours.flat_map(|dispatch| bed.placement.waves(0, dispatch.dispatch)).collect();
    on_engine(bed.agent(0), &waves, SE)
}

#[test]
fn buffers_in_turn_hold_one_stream() {
    for target in TARGETS {
        let bed = &small(target);
        let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
        let launches = sample.launches().unwrap();
        // An even ring on one, odd ones on the others.
        let buffers = if bed.gpu(0).target() == "gfx90a" { 2 } else { 3 };
        let mut ring = Ring::start(bed, buffers);
        for _ in 0..1000 {
            if ring.turns >= 4 {
                break;
            }
            run_all(&ring.queue, &launches);
            ring.poll(bed);
        }
        assert!(ring.turns >= 4 && !ring.too_late, "{} turns", ring.turns);
        let data = ring.stop(bed);
        let placed = traced_waves(bed, &launches);
        let expected = walked(bed, &placed, |wave| is_detailed(bed.agent(0), 0, wave));
        let found = decode_walks(&data, &loaded(bed, &launches));
        assert_eq!(relative(found), relative(expected));
    }
}

#[test]
fn tokens_are_lost_and_told_when_nobody_takes_full_buffers() {
    for target in TARGETS {
        let bed = &small(target);
        let sample = Sample::load(&bed.application, bed.gpu(0)).unwrap();
        let launches = sample.launches().unwrap();
        let mut ring = Ring::start(bed, 2);
        for _ in 0..20 {
            run_all(&ring.queue, &launches);
        }
        // Both are full by now; the second goes on where the first lies.
        ring.poll(bed);
        // gfx9 has no bit that says so.
        assert_eq!((ring.turns, ring.too_late), (1, bed.agent(0).target.major == 12));
        run_all(&ring.queue, &launches);
        ring.poll(bed);
        let data = ring.stop(bed);
        let mut losses = 0;
        let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
        let outcome = decoder.decode(&data, &mut |record: Record<'_>| {
            losses +=
                usize::from(matches!(record, Record::Event(event) if event.kind == EventKind::PacketLoss));
        });
        outcome.unwrap();
        assert_eq!(losses, 1);
    }
}
