//! The real library: its version, its refusals, and its counter packets beside ours on agents that no golden has.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use hsa_sys::loader::{AqlProfile, HsaRuntime};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wavescope_pm4::{RegisterMap, Target, print};

use super::memory::{Call, RealMemory};
use super::sysroot;
use crate::agent::AgentShape;
use crate::builtin::Builtin;
use crate::error::Error;
use crate::event::Event;
use crate::memory::Memory;
use crate::native::Native;
use crate::native::library::Library;
use crate::native::session::Session;
use crate::program::{CounterInstance, CounterProgram, PacketPrograms};
use crate::trace::TraceConfig;

/// The library without the check for a runtime, which counters do not need.
fn unchecked(libraries: &Path) -> Native {
    let path = libraries.join(AqlProfile::SONAME);
    Native { library: Arc::new(Library::load(Some(&path)).unwrap()) }
}

#[test]
fn the_real_library_says_version_1_0_0() {
    sysroot::run("native::tests::real::the_real_library_says_version_1_0_0", |libraries| {
        let path = libraries.join(AqlProfile::SONAME);
        assert_eq!(Native::version_of(Some(&path)).unwrap(), [1, 0, 0]);
        assert_eq!(Native::version_of(None).unwrap(), [1, 0, 0]);
        let origin = unchecked(libraries).origin();
        assert!(origin.starts_with("libhsa-amd-aqlprofile64.so.1 1.0.0 from /"), "{origin}");
    });
}

#[test]
fn a_runtime_that_is_loaded_but_not_initialised_is_refused() {
    let name = "native::tests::real::a_runtime_that_is_loaded_but_not_initialised_is_refused";
    sysroot::run(name, |_| {
        let runtime = HsaRuntime::load().unwrap();
        let error = Native::open().unwrap_err();
        assert!(error.to_string().contains("HSA_STATUS_ERROR_NOT_INITIALIZED"), "{error}");
        // SAFETY: no argument; the runtime is loaded for good.
        let initialised = unsafe { (runtime.hsa_init)() }.0 == 0;
        match Native::open() {
            Ok(native) => assert!(initialised && native.version() == [1, 0, 0]),
            // Without a GPU the runtime does not initialise.
            Err(error) => assert!(!initialised && matches!(error, Error::RuntimeNotInitialised { .. })),
        }
    });
}

#[test]
fn what_the_real_library_would_crash_on_is_refused_by_name() {
    let name = "native::tests::real::what_the_real_library_would_crash_on_is_refused_by_name";
    sysroot::run(name, |libraries| {
        let native = unchecked(libraries);
        let mi300 = AgentShape::new("gfx942", 8, 32, 304, 1);
        let unknown = native.counters(&mi300, &[Event::new(wavescope_pm4::BlockId(8), 1)]).err().unwrap();
        assert!(matches!(unknown, Error::UnknownBlock { .. }), "{unknown}");
        let navi = AgentShape::new("gfx1201", 1, 4, 64, 2);
        let nine: Vec<_> = (0..9).map(|id| Event::new(wavescope_pm4::BlockId::SQ, id)).collect();
        let ninth = native.counters(&navi, &nine).err().unwrap();
        assert!(matches!(ninth, Error::NoCounterRegisters { .. }), "{ninth}");
        // A trace of an agent that no runtime gave out would abort.
        let untraceable = native.trace(&navi, &TraceConfig::default()).err().unwrap();
        assert!(matches!(untraceable, Error::RuntimeNotInitialised { .. }), "{untraceable}");
    });
}

/// One process for each chip: the library adjusts block tables that all chips of a generation share, so an MI300 seen
/// before changes what is written for an MI100 (a defect of it, which ours does not have).
macro_rules! counters_are_ours_to_the_byte {
    ($($name:ident: $gfxip:literal, xcc $xcc:expr, se $se:expr, sa $sa:expr;)*) => { $(
        #[test]
        fn $name() {
            let name = concat!("native::tests::real::", stringify!($name));
            sysroot::run(name, |libraries| compare_many(&unchecked(libraries), &agents($gfxip, $xcc, $se, $sa)));
        }
    )* };
}

counters_are_ours_to_the_byte! {
    gfx900_counters_are_ours_to_the_byte: "gfx900", xcc 1..2, se 1..5, sa 1..2;
    gfx906_counters_are_ours_to_the_byte: "gfx906", xcc 1..2, se 1..5, sa 1..2;
    gfx908_counters_are_ours_to_the_byte: "gfx908", xcc 1..2, se 1..9, sa 1..2;
    gfx90a_counters_are_ours_to_the_byte: "gfx90a", xcc 1..2, se 1..9, sa 1..2;
    gfx941_counters_are_ours_to_the_byte: "gfx941", xcc 1..9, se 1..5, sa 1..2;
    gfx942_counters_are_ours_to_the_byte: "gfx942", xcc 1..9, se 1..5, sa 1..2;
    gfx950_counters_are_ours_to_the_byte: "gfx950", xcc 1..9, se 1..5, sa 1..2;
    gfx1030_counters_are_ours_to_the_byte: "gfx1030", xcc 1..2, se 1..5, sa 1..3;
    gfx1036_counters_are_ours_to_the_byte: "gfx1036", xcc 1..2, se 1..5, sa 1..3;
    gfx1100_counters_are_ours_to_the_byte: "gfx1100", xcc 1..2, se 1..7, sa 1..3;
    gfx1102_counters_are_ours_to_the_byte: "gfx1102", xcc 1..2, se 1..7, sa 1..3;
    gfx1200_counters_are_ours_to_the_byte: "gfx1200", xcc 1..2, se 1..5, sa 1..3;
    gfx1201_counters_are_ours_to_the_byte: "gfx1201", xcc 1..2, se 1..5, sa 1..3;
}

fn compare_many(native: &Native, agents: &(impl Strategy<Value = AgentShape> + Clone)) {
    let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
    let compared = Cell::new(0);
    let known = RefCell::new(HashMap::new());
    let cases = agents.clone().prop_flat_map(|agent| {
        let events = events(&agent);
        (Just(agent), events)
    });
    let outcome = runner.run(&cases, |(agent, events)| {
        if is_unambiguous(&mut known.borrow_mut(), &agent) {
            compared.set(compared.get() + u32::from(compare(native, &agent, &events)));
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(compared.get() > 30, "only {} sets were compared", compared.get());
}

/// The library shares one builder between agents of the same gfx name and compute units, whatever else they have, and
/// the first one decides (a defect of its cache): only that one can be compared.
fn is_unambiguous(known: &mut HashMap<(String, u32), AgentShape>, agent: &AgentShape) -> bool {
    let first = known.entry((agent.gfxip.clone(), agent.cu)).or_insert_with(|| agent.clone());
    (first.xcc, first.se, first.sa_per_se) == (agent.xcc, agent.se, agent.sa_per_se)
}

/// Makes one set both ways and compares everything that can be seen. `false` when it is refused.
fn compare(native: &Native, agent: &AgentShape, events: &[Event]) -> bool {
    let (theirs, ours) = match (native.counters(agent, events), Builtin.counters(agent, events)) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (_, Err(refused)) => {
            compare_refusal(native, agent, events, &refused);
            return false;
        }
        (Err(error), Ok(_)) => panic!("{agent:?} {events:?}: {error}"),
    };
    let real = Arc::new(RealMemory::default());
    let memory: Arc<dyn Memory> = Arc::clone(&real) as Arc<dyn Memory>;
    let instance = theirs.instance(&memory).unwrap();
    let replay = Arc::new(RealMemory::replaying(real.addresses()));
    let memory: Arc<dyn Memory> = Arc::clone(&replay) as Arc<dyn Memory>;
    let twin = ours.instance(&memory).unwrap();
    for (theirs, ours) in
        [(instance.start(), twin.start()), (instance.read(), twin.read()), (instance.stop(), twin.stop())]
    {
        assert_eq!(theirs, ours, "{agent:?} {events:?}");
    }
    assert_eq!(instance.output(), twin.output());
    compare_values(instance.as_ref(), twin.as_ref(), ours.as_ref());
    drop(twin);
    drop(instance);
    let (theirs, ours) = (real.calls(), replay.calls());
    assert_eq!(theirs.len(), ours.len(), "{agent:?} {events:?}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert!(theirs == ours, "{agent:?} {events:?}\n{}\n{}", shown(theirs, agent), shown(ours, agent));
    }
    true
}

/// What ours refuses, the library refuses with the same status, unless it crashes on it.
fn compare_refusal(native: &Native, agent: &AgentShape, events: &[Event], refused: &Error) {
    if !matches!(refused, Error::TooManyCounters { .. } | Error::NoAccumulation { .. }) {
        return;
    }
    let memory: Arc<dyn Memory> = Arc::new(RealMemory::default());
    let error = native.library.create_counters(agent, events, &Session::new(&memory)).unwrap_err();
    assert_eq!(error.status(), refused.status(), "{agent:?} {events:?}: {refused}");
}

/// A call as people read it.
fn shown(call: &Call, agent: &AgentShape) -> String {
    match call {
        Call::CopiedIn(address, bytes) => {
            let map = RegisterMap::with_fixed_bases(Target::from_gfxip(&agent.gfxip).unwrap());
            let dwords = print::dwords_from_bytes(bytes);
            format!("{address:#x}:\n{}", print::CommandBuffer::new(&map, &dwords))
        }
        other => format!("{other:?}"),
    }
}

/// Slot i holds i: both must hand out the same counter ids and values.
fn compare_values(theirs: &dyn CounterInstance, ours: &dyn CounterInstance, program: &dyn CounterProgram) {
    let (address, bytes) = theirs.output();
    let contents: Vec<_> = (0..bytes / 8).flat_map(u64::to_le_bytes).collect();
    RealMemory::write(address, &contents);
    let values = |instance: &dyn CounterInstance| {
        let mut values = Vec::new();
        let done = instance.iterate(&mut |sample, value| {
            values.push((sample.event, sample.counter_id, value));
            ControlFlow::Continue(())
        });
        done.unwrap();
        values
    };
    let found = values(theirs);
    assert_eq!(found.len(), program.samples().len());
    assert_eq!(found, values(ours));
}

/// Agents with counts of units, engines and XCCs as harvesting and partitioning leave them: arrays may differ by two
/// units.
fn agents(
    gfxip: &'static str,
    xcc: Range<u32>,
    se_per_xcc: Range<u32>,
    sa: Range<u32>,
) -> impl Strategy<Value = AgentShape> + Clone {
    let numbers = (xcc, se_per_xcc, sa, 2u32..21, any::<prop::sample::Index>());
    numbers.prop_map(move |(xcc, per_xcc, sa, cus, off)| {
        let se = per_xcc * xcc;
        let harvested = off.index((2 * se * sa) as usize) as u32;
        AgentShape::new(gfxip, xcc, se, (cus * se * sa).saturating_sub(harvested).max(2), sa)
    })
}

/// Events of blocks that the agent has, accumulating ones and instances that it lacks among them.
fn events(agent: &AgentShape) -> impl Strategy<Value = Vec<Event>> + use<> {
    let blocks = Target::from_gfxip(&agent.gfxip).map_or(&[][..], Target::blocks);
    let event = (
        0..blocks.len(),
        0u32..40,
        0u32..512,
        prop_oneof![8 => Just(0u32), 1 => Just(1u32), 1 => Just(2u32)],
    );
    let event = event.prop_map(move |(at, instance, id, flags)| {
        let block = &blocks[at];
        let instance = if instance < 36 { instance % block.instances } else { instance };
        let flags = if block.id == wavescope_pm4::BlockId::SQ { flags } else { 0 };
        Event::new(block.id, id).with_instance(instance).with_flags(flags)
    });
    proptest::collection::vec(event, 1..12)
}
