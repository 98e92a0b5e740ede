//! What it costs to make a packet program, and to make an instance of it, on each generation.
//!
//! The memory is an arena, so that the figures are ours and not an allocator's.

#![expect(missing_docs, reason = "criterion's macros generate undocumented functions")]

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use criterion::{Criterion, criterion_group, criterion_main};
use wavescope_aql_profile::{
    AgentShape, AllocationRequest, Builtin, Event, Memory, PacketPrograms, Status, TraceConfig,
    TraceParameter,
};
use wavescope_pm4::BlockId;

/// Agents by name, each with its real numbers.
const AGENTS: [(&str, &str, [u32; 4]); 6] = [
    ("gfx90a", "gfx90a", [1, 8, 104, 1]),
    ("gfx942", "gfx942", [8, 32, 304, 1]),
    ("gfx942-cpx", "gfx942", [1, 4, 38, 1]),
    ("gfx1030", "gfx1030", [1, 4, 80, 2]),
    ("gfx1100", "gfx1100", [1, 6, 96, 2]),
    ("gfx1201", "gfx1201", [1, 4, 64, 2]),
];

/// Hands out places of one buffer as a stack does: what is freed, and all above it, is handed out again.
#[derive(Default)]
struct Arena(Mutex<State>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    next: u64,
}

const BASE: u64 = 0x7000_0000_0000;

impl Arena {
    fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Memory for Arena {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        self.with(|state| {
            let address = BASE + state.next;
            state.next += request.bytes.next_multiple_of(4096);
            Ok(address)
        })
    }

    fn free(&self, address: u64) {
        self.with(|state| state.next = state.next.min(address - BASE));
    }

    fn store_zeros(&self, address: u64, offsets: &[u64]) {
        self.with(|state| {
            let at = (address - BASE) as usize;
            let end = at + offsets.last().map_or(0, |last| *last as usize + 4);
            if state.bytes.len() < end {
                state.bytes.resize(end, 0);
            }
            for offset in offsets {
                state.bytes[at + *offset as usize..][..4].fill(0);
            }
        });
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.with(|state| {
            let at = (address - BASE) as usize;
            if state.bytes.len() < at + bytes.len() {
                state.bytes.resize(at + bytes.len(), 0);
            }
            state.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        });
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.with(|state| {
            let at = (address - BASE) as usize;
            into.copy_from_slice(&state.bytes[at..at + into.len()]);
        });
    }
}

/// Eight sequencer counters.
fn sequencer() -> Vec<Event> {
    (1..9).map(|id| Event::new(BlockId::SQ, id)).collect()
}

/// Eight counters as a profiling run mixes them: GRBM, SQ, and the cache behind the compute units.
fn mixed(gfxip: &str) -> Vec<Event> {
    let cache = if gfxip.starts_with("gfx9") { BlockId(12) } else { BlockId(29) };
    let mut events = vec![Event::new(BlockId::GRBM, 2)];
    events.extend((1..5).map(|id| Event::new(BlockId::SQ, id)));
    events.extend((0..3).map(|instance| Event::new(cache, 3).with_instance(instance)));
    events
}

fn programs(criterion: &mut Criterion) {
    for (name, gfxip, [xcc, se, cu, sa]) in AGENTS {
        let agent = AgentShape::new(gfxip, xcc, se, cu, sa);
        for (set, events) in [("8-sq", sequencer()), ("8-mixed", mixed(gfxip))] {
            counters(criterion, &format!("{set}/{name}"), &agent, &events);
        }
        trace(criterion, name, &agent);
    }
}

#[expect(clippy::unwrap_used, reason = "the configurations are valid")]
fn counters(criterion: &mut Criterion, case: &str, agent: &AgentShape, events: &[Event]) {
    criterion.bench_function(&format!("aql-profile/build/{case}"), |bencher| {
        bencher.iter(|| Builtin.counters(black_box(agent), black_box(events)).unwrap());
    });
    let program = Builtin.counters(agent, events).unwrap();
    let memory: Arc<dyn Memory> = Arc::new(Arena::default());
    criterion.bench_function(&format!("aql-profile/instance/{case}"), |bencher| {
        bencher.iter(|| program.instance(black_box(&memory)).unwrap());
    });
    let first = program.instance(&memory).unwrap();
    criterion.bench_function(&format!("aql-profile/sibling/{case}"), |bencher| {
        bencher.iter(|| first.sibling().unwrap());
    });
}

#[expect(clippy::unwrap_used, reason = "the configurations are valid")]
fn trace(criterion: &mut Criterion, name: &str, agent: &AgentShape) {
    let config = TraceConfig::from(vec![TraceParameter::target(1), TraceParameter::se_mask(1)]);
    criterion.bench_function(&format!("aql-profile/build/trace/{name}"), |bencher| {
        bencher.iter(|| Builtin.trace(black_box(agent), black_box(&config)).unwrap());
    });
    let program = Builtin.trace(agent, &config).unwrap();
    let memory: Arc<dyn Memory> = Arc::new(Arena::default());
    criterion.bench_function(&format!("aql-profile/instance/trace/{name}"), |bencher| {
        bencher.iter(|| program.instance(black_box(&memory)).unwrap());
    });
}

criterion_group!(benches, programs);
criterion_main!(benches);
