//! What is refused is refused before anything is allocated, with upstream's status; what is doubtful is warned of.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failed check fails the test")]

use wavescope_aql_profile::{
    AgentShape, Builtin, Error, Event, PacketPrograms, Status, TraceConfig, TraceParameter, Warning, validate,
};
use wavescope_pm4::{BlockId, Target};

fn mi300x() -> AgentShape {
    AgentShape::new("gfx942", 8, 32, 304, 1)
}

fn block(agent: &AgentShape, name: &str) -> BlockId {
    Target::from_gfxip(&agent.gfxip).unwrap().block_named(name).unwrap().id
}

fn refusal(agent: &AgentShape, events: &[Event]) -> Error {
    Builtin.counters(agent, events).err().expect("refused")
}

fn trace_refusal(agent: &AgentShape, parameters: Vec<TraceParameter>) -> Error {
    Builtin.trace(agent, &TraceConfig::from(parameters)).err().expect("refused")
}

#[test]
fn the_librarys_crashes_are_named_errors() {
    let absent = refusal(&mi300x(), &[Event::new(BlockId(29), 1)]);
    assert_eq!(absent.to_string(), "gfx942 has no counter block 29");
    let navi = AgentShape::new("gfx1201", 1, 4, 64, 2);
    let ninth = refusal(&navi, &(0..9).map(|id| Event::new(BlockId::SQ, id)).collect::<Vec<_>>());
    assert_eq!(ninth.to_string(), "event 8 of block 6[0] would need counter 8 of SQ, which has no registers");
    let beyond = refusal(&navi, &[Event::new(block(&navi, "SDMA"), 1).with_instance(2)]);
    assert!(matches!(beyond, Error::NoCounterRegisters { block: "SDMA", .. }), "{beyond}");
    let impossible = refusal(&AgentShape::new("gfx942", 0, 32, 304, 1), &[Event::new(BlockId::GRBM, 2)]);
    assert!(matches!(impossible, Error::ImpossibleAgent { xcc: 0, .. }));
    for error in [absent, ninth, beyond, impossible] {
        assert_eq!(error.status(), Status::ERROR);
    }
}

#[test]
fn limits_of_blocks_and_trace_buffers_are_told() {
    let nine: Vec<_> = (0..9).map(|id| Event::new(BlockId::SQ, id)).collect();
    let text = refusal(&mi300x(), &nine).to_string();
    assert_eq!(text, "event 8 of block 6[0] is one too many: SQ has 8 counters for each instance");
    let mut small = vec![TraceParameter::se_mask(0xF)];
    small.extend(TraceParameter::buffer_size(500 << 10));
    let error = trace_refusal(&mi300x(), small);
    assert!(
        matches!(error, Error::TraceBufferSize { least: 0x2_0000, step: 0xF000..0x2_0000, .. }),
        "{error}"
    );
    let mut large = vec![TraceParameter::se_mask(1)];
    large.extend(TraceParameter::buffer_size(1 << 30));
    let error = trace_refusal(&AgentShape::new("gfx1100", 1, 6, 96, 2), large);
    assert!(matches!(error, Error::TraceBufferSize { below: 0x2000_0000, .. }), "{error}");
}

#[test]
fn a_set_whose_conditional_body_overflows_its_field_is_refused() {
    // 4 counters of TCP are 252 dwords for each instance. The 16 real ones are far from the limit of 16,383; nothing
    // else keeps a caller from naming more.
    let agent = mi300x();
    let tcp = block(&agent, "TCP");
    let set = |instances: u32| -> Vec<_> {
        (0..instances * 4).map(|at| Event::new(tcp, at % 4).with_instance(at / 4)).collect()
    };
    assert!(Builtin.counters(&agent, &set(64)).is_ok());
    let events = set(66);
    let error = refusal(&agent, &events);
    assert!(matches!(error, Error::ConditionalTooLong { limit: 0x3FFF, .. }), "{error}");
}

#[test]
fn validation_judges_block_and_instance() {
    let grbm = Event::new(BlockId::GRBM, 0xFFFF_FFFF);
    assert!(validate(&mi300x(), grbm).is_ok());
    let error = validate(&mi300x(), grbm.with_instance(1)).unwrap_err();
    assert!(matches!(error, Error::UnknownInstance { block: "GRBM", instances: 1, .. }));
}

#[test]
fn doubtful_sets_are_warned_of() {
    let warned =
        |agent: &AgentShape, events: &[Event]| Builtin.counters(agent, events).unwrap().warnings().to_vec();
    let agent = mi300x();
    let (rpb, sx) = (Event::new(block(&agent, "RPB"), 3), Event::new(block(&agent, "SX"), 5));
    assert_eq!(warned(&agent, &[rpb]), []);
    assert_eq!(warned(&agent, &[rpb, Event::new(BlockId::SQ, 4)]), [Warning::MixedDieBlocks]);
    assert_eq!(warned(&agent, &[sx]), [Warning::EventIgnored(sx)]);
    let beyond = Event::new(BlockId::GRBM, 2).with_instance(7);
    assert_eq!(warned(&agent, &[beyond]), [Warning::NoSuchInstance(beyond)]);
    let navi = AgentShape::new("gfx1201", 1, 4, 64, 2);
    let (gl1a, tcp) = (Event::new(block(&navi, "GL1A"), 1), Event::new(block(&navi, "TCP"), 1));
    assert_eq!(warned(&navi, &[gl1a]), [Warning::ArraysReadTwice(gl1a)]);
    assert_eq!(warned(&navi, &[tcp]), [Warning::AmbiguousCoordinates(tcp)]);
    let older = AgentShape::new("gfx1100", 1, 6, 96, 2);
    let (gus, sq) = (Event::new(block(&older, "GUS"), 1), Event::new(BlockId::SQ, 4));
    assert_eq!(warned(&older, &[gus]), [Warning::NeverEnabled(gus)]);
    assert_eq!(warned(&older, &[sq]), [Warning::UpperHalfUnwritten(sq)]);
}
