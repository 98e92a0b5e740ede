//! `api-behaviour.json`: statuses in unusual situations, as far as our API has the situation.
//!
//! The library's handles (agents, packet sets) are types of ours, so a stale, foreign or unregistered one cannot
//! be passed; those keys are listed in [`TYPED_AWAY`]. A key that is in no list fails the case.

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;
use wavescope_aql_profile::{
    AgentShape, Builtin, Error, Event, Memory, PacketPrograms, Status, TraceConfig, TraceParameter,
    dimensions, validate,
};
use wavescope_pm4::BlockId;

use super::info::compare_event_ids;
use super::memory::Recorder;
use super::value::{number, small};
use crate::golden::Outcome;

/// Situations that our types exclude.
const TYPED_AWAY: [&str; 8] = [
    "register_agent_info",
    "register_sequence",
    "unregistered_handle",
    "att_iterate_with_pmc_handle",
    "double_delete",
    "att_unknown_hsa_agent",
    "event_ids_callback_error",
    "lib",
];

/// The recording's agent.
fn agent() -> AgentShape {
    AgentShape::new("gfx942", 8, 32, 304, 1)
}

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    for (key, recorded) in case.as_object().context("the case is no object")? {
        match key.as_str() {
            "unsupported_gfx" => {
                let unsupported = AgentShape::new("gfx803", 1, 4, 64, 1);
                compare_validity(key, &recorded["validate"], &unsupported, grbm(), outcome)?;
            }
            "validate" => compare_validations(recorded, outcome)?,
            "get_pmc_info" => compare_queries(recorded, outcome)?,
            "pmc_callback_return" => compare_callback_returns(recorded, outcome)?,
            "alloc_failure_returns_0x1008" => compare_refusals(recorded, outcome)?,
            "att_callback_error_ignored" => compare_trace_callbacks(recorded, outcome)?,
            "event_ids" => compare_event_ids(recorded, outcome)?,
            "probes" => compare_probes(recorded, outcome)?,
            known if TYPED_AWAY.contains(&known) => {}
            other => outcome.differ(other, "no check of ours is for this key"),
        }
    }
    Ok(())
}

fn grbm() -> Event {
    Event::new(BlockId::GRBM, 2)
}

fn code(result: Result<(), Error>) -> u32 {
    result.map_or_else(|error| error.status().0, |()| 0)
}

/// Compares [status, valid].
fn compare_validity(
    place: &str,
    recorded: &Value,
    agent: &AgentShape,
    event: Event,
    outcome: &mut Outcome,
) -> Result<()> {
    let found = validate(agent, event);
    let valid = found.is_ok();
    let expected = (small(&recorded[0])?, recorded[1].as_bool());
    outcome.compare(format_args!("{place}: {event}"), &expected, &(code(found), Some(valid)));
    Ok(())
}

fn compare_validations(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    for (key, expected) in recorded.as_object().context("validate is no object")? {
        let event = match key.as_str() {
            "good" => grbm(),
            "bad_block_8" => Event::new(BlockId(8), 2),
            "block_200" => Event::new(BlockId(200), 2),
            "bad_index" => grbm().with_instance(1),
            "huge_event" => Event::new(BlockId::GRBM, 0xFFFF_FFFF),
            "bad_flags" => grbm().with_flags(1),
            other => {
                outcome.differ(other, "no validation of ours is for this key");
                continue;
            }
        };
        compare_validity(key, expected, &agent(), event, outcome)?;
    }
    Ok(())
}

/// Counters of a block, and a block by name; the other attributes do not exist in either API.
fn compare_queries(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    let agent = agent();
    let target = agent.chip()?.target;
    let block = target.block_named("GRBM").context("GRBM is not in our table")?;
    let counters = (small(&recorded["4"][0])?, small(&recorded["4"][1])?);
    outcome.compare("4: counters", &counters, &(code(validate(&agent, grbm())), block.counters));
    let instances = dimensions(&agent, block.id)?.instances();
    let by_name = [small(&recorded["5"][0])?, small(&recorded["5"][1])?, small(&recorded["5"][2])?];
    outcome.compare("5: block by name", &by_name, &[0, block.id.0, instances]);
    let unknown = target.block_named("NO_SUCH_BLOCK").map_or(Status::ERROR.0, |_| 0);
    outcome.compare("5_unknown", &small(&recorded["5_unknown"][0])?, &unknown);
    let bad_index = code(validate(&agent, grbm().with_instance(99)));
    outcome.compare("4_bad_index", &small(&recorded["4_bad_index"][0])?, &bad_index);
    Ok(())
}

fn compare_callback_returns(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    for (key, expected) in recorded.as_object().context("pmc_callback_return is no object")? {
        let answer = match key.as_str() {
            "info_break" => Status::INFO_BREAK,
            "error" => Status::ERROR,
            "invalid_argument" => Status::INVALID_ARGUMENT,
            other => {
                outcome.differ(other, "no status of ours is for this key");
                continue;
            }
        };
        // The recording's callback broke at the second value.
        let breaks_at = number(&expected[1])?;
        let memory: Arc<dyn Memory> = Arc::new(Recorder::new(&Value::Array(Vec::new()))?);
        let program = Builtin.counters(&agent(), &[Event::new(BlockId::SQ, 4)])?;
        let mut calls = 0;
        let found = program.instance(&memory)?.iterate(&mut |_, _| {
            calls += 1;
            if calls == breaks_at { ControlFlow::Break(answer) } else { ControlFlow::Continue(()) }
        });
        let expected = (small(&expected[0])?, breaks_at);
        outcome.compare(format_args!("pmc_callback_return.{key}"), &expected, &(code(found), calls));
    }
    Ok(())
}

/// A refused allocation: its status comes back. What was granted before is freed, unlike in the library, which
/// loses some of it.
fn compare_refusals(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    for (key, expected) in recorded.as_object().context("alloc_failure is no object")? {
        let (kind, at) = key.split_once('@').context("a refusal is KIND@INDEX")?;
        let recorder = Arc::new(Recorder::failing_at(at.parse()?));
        let memory: Arc<dyn Memory> = Arc::clone(&recorder) as Arc<dyn Memory>;
        let made = match kind {
            "pmc" => Builtin.counters(&agent(), &[grbm()])?.instance(&memory).map(drop),
            "att" => {
                let config = TraceConfig::from(vec![TraceParameter::se_mask(1)]);
                Builtin.trace(&agent(), &config)?.instance(&memory).map(drop)
            }
            "codeobj" => {
                let marker = wavescope_aql_profile::CodeObjectMarker {
                    id: 1,
                    address: 0x1000,
                    bytes: 0x1000,
                    unload: false,
                    from_start: false,
                };
                Builtin.marker(&agent(), &marker, &memory).map(drop)
            }
            other => {
                outcome.differ(other, "no program of ours is for this key");
                continue;
            }
        };
        outcome.compare(format_args!("{key}.status"), &small(&expected["status"])?, &code(made));
        let log = recorder.log();
        // The recording counts the refused request too.
        outcome.compare(
            format_args!("{key}.allocs"),
            &number(&expected["allocs"])?,
            &(log.granted() as u64 + 1),
        );
        outcome.compare(format_args!("{key}: all freed"), &log.granted(), &log.freed.len());
    }
    Ok(())
}

/// [status, callbacks]: a trace callback has no answer, every engine is handed out.
fn compare_trace_callbacks(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    let memory: Arc<dyn Memory> = Arc::new(Recorder::new(&Value::Array(Vec::new()))?);
    let instance = Builtin.trace(&agent(), &TraceConfig::default())?.instance(&memory)?;
    let mut calls = 0;
    let status = instance.iterate(&mut |_, _| calls += 1);
    let expected = (small(&recorded[0])?, number(&recorded[1])?);
    outcome.compare("att_callback_error_ignored", &expected, &(status.0, calls));
    Ok(())
}

/// Where the library crashes ours refuses; where it is careless ours does the same.
fn compare_probes(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    for key in recorded.as_object().context("probes is no object")?.keys() {
        match key.as_str() {
            "create_with_unsupported_block" => {
                let refused = Builtin.counters(&agent(), &[Event::new(BlockId(8), 2)]).err();
                let named = matches!(refused, Some(Error::UnknownBlock { block: BlockId(8), .. }));
                outcome.compare(format_args!("probes.{key} is refused by name"), &true, &named);
            }
            "create_with_index_out_of_range_10_is_success" => {
                let made = Builtin.counters(&agent(), &[grbm().with_instance(10)]).map(drop);
                outcome.compare(format_args!("probes.{key}"), &0, &code(made));
            }
            "pmc_iterate_unknown_handle" | "att_iterate_unknown_handle" => {}
            other => outcome.differ(other, "no probe of ours is for this key"),
        }
    }
    Ok(())
}
