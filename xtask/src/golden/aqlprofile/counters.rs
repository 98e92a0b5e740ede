//! `pmc-*.json`: one counter set.

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;
use wavescope_aql_profile::{
    AgentShape, BuiltinCounters, CounterInstance, CounterProgram, Event, Memory, dimensions,
};
use wavescope_pm4::BlockId;

use super::agent::shape;
use super::memory::Recorder;
use super::value::{list, number, numbers, rows, small};
use super::{accepted, commands};
use crate::golden::Outcome;

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    let agent = shape(&case["agent"], None)?;
    let events = list(&case["events"])?.iter().map(event).collect::<Result<Vec<_>>>()?;
    let memory = Arc::new(Recorder::new(&case["allocs"])?);
    let program = BuiltinCounters::new(&agent, &events);
    let Some(program) = accepted(case, program, &memory, outcome)? else { return Ok(()) };
    let memory_object: Arc<dyn Memory> = Arc::clone(&memory) as Arc<dyn Memory>;
    let instance = program.instance(&memory_object)?;
    memory.compare(&case["allocs"], outcome)?;
    compare_packets(case, &program, instance.as_ref(), &memory, outcome)?;
    compare_values(case, &program, instance.as_ref(), &memory, outcome)?;
    compare_dimensions(case, &agent, outcome)?;
    drop(instance);
    outcome.compare("free_order", &numbers(&case["free_order"])?, &memory.log().freed);
    Ok(())
}

fn event(value: &Value) -> Result<Event> {
    let [block, instance, id, flags] = list(value)? else {
        anyhow::bail!("an event has four numbers: {value}");
    };
    Ok(Event {
        block: BlockId(small(block)?),
        instance: small(instance)?,
        id: small(id)?,
        flags: small(flags)?,
    })
}

fn compare_packets(
    case: &Value,
    program: &BuiltinCounters,
    instance: &dyn CounterInstance,
    memory: &Recorder,
    outcome: &mut Outcome,
) -> Result<()> {
    let log = memory.log();
    let parts = [
        ("start", instance.start(), program.start_commands()),
        ("read", instance.read(), program.read_commands()),
        ("stop", instance.stop(), program.stop_commands()),
    ];
    for (name, packet, ours) in parts {
        commands::compare(name, (&case["aql"][name], &case["ib"][name]), &packet, ours, &log, outcome)?;
    }
    outcome.compare("copies", &rows(&case["copies"])?, &log.copies_in);
    let stores = log.stores.iter().map(|(offset, bytes)| (*offset, bytes.len() as u64, hex(bytes)));
    let recorded = match case.get("out_host_writes") {
        Some(writes) => list(writes)?.iter().map(host_write).collect::<Result<Vec<_>>>()?,
        None => Vec::new(),
    };
    outcome.compare("out_host_writes", &recorded, &stores.collect());
    Ok(())
}

fn host_write(value: &Value) -> Result<(u64, u64, String)> {
    Ok((number(&value[0])?, number(&value[1])?, super::value::text(&value[2])?.to_owned()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The output's 64-bit slot i holds i: the callbacks must name the same event, counter, value and coordinates.
fn compare_values(
    case: &Value,
    program: &BuiltinCounters,
    instance: &dyn CounterInstance,
    memory: &Recorder,
    outcome: &mut Outcome,
) -> Result<()> {
    let slots = program.output_bytes() / 8;
    let contents: Vec<_> = (0..slots).flat_map(u64::to_le_bytes).collect();
    memory.log().fill(0, &contents);
    let mut values = Vec::new();
    let status = instance.iterate(&mut |sample, value| {
        values.push((*sample, value));
        ControlFlow::Continue(())
    });
    let status = status.map_or_else(|error| error.status().0, |()| 0);
    outcome.compare("iter_status", &small(&case["iter_status"])?, &status);
    outcome.compare("n_values", &number(&case["n_values"])?, &(values.len() as u64));
    let iter_events = list(&case["iter_events"])?.iter().map(event).collect::<Result<Vec<_>>>()?;
    let recorded = list(&case["iter"])?;
    outcome.compare("iter.len", &recorded.len(), &values.len());
    let agent = shape(&case["agent"], None)?;
    for (at, (entry, (sample, value))) in recorded.iter().zip(&values).enumerate() {
        let index = usize::try_from(number(&entry[0])?)?;
        let expected_event = iter_events.get(index).context("an index beyond iter_events")?;
        let event = program.events().get(sample.event as usize).context("a sample without an event")?;
        let coordinates = dimensions(&agent, event.block)?.coordinates(sample.counter_id);
        let coordinates: Vec<_> = coordinates.into_iter().map(u64::from).collect();
        let expected = (*expected_event, number(&entry[1])?, number(&entry[2])?, numbers(&entry[3])?);
        let found = (*event, sample.counter_id, *value, coordinates);
        outcome.compare(format_args!("iter[{at}]"), &expected, &found);
    }
    Ok(())
}

fn compare_dimensions(case: &Value, agent: &AgentShape, outcome: &mut Outcome) -> Result<()> {
    for (block, expected) in case["dims"].as_object().context("dims is no object")? {
        let found = dimensions(agent, BlockId(block.parse()?))?;
        outcome.compare(format_args!("dims.{block}"), &super::info::recorded_dimensions(expected)?, &{
            super::info::found_dimensions(&found)
        });
    }
    Ok(())
}
