//! `att-*.json`: one thread trace.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use wavescope_aql_profile::{BuiltinTrace, Memory, TraceConfig, TraceInstance, TraceParameter, TraceProgram};

use super::agent::shape;
use super::memory::Recorder;
use super::value::{list, number, numbers, rows, small};
use super::{accepted, commands};
use crate::golden::Outcome;

/// Bytes of one engine's record in the control buffer.
const RECORD: usize = 32;

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    let agent = shape(&case["agent"], None)?;
    let config = TraceConfig::from(list(&case["params"])?.iter().map(parameter).collect::<Result<Vec<_>>>()?);
    let memory = Arc::new(Recorder::new(&case["allocs"])?);
    let program = BuiltinTrace::new(&agent, &config);
    let Some(program) = accepted(case, program, &memory, outcome)? else { return Ok(()) };
    let memory_object: Arc<dyn Memory> = Arc::clone(&memory) as Arc<dyn Memory>;
    let instance = program.instance(&memory_object)?;
    memory.compare(&case["allocs"], outcome)?;
    compare_packets(case, &program, instance.as_ref(), &memory, outcome)?;
    let enabled: Vec<_> = program.layout().selected().map(u64::from).collect();
    outcome.compare("enabled_se", &numbers(&case["enabled_se"])?, &enabled);
    for scenario in list(&case["iterate"])? {
        compare_scenario(scenario, instance.as_ref(), &memory, outcome)?;
    }
    drop(instance);
    outcome.compare("free_order", &numbers(&case["free_order"])?, &memory.log().freed);
    Ok(())
}

/// [name, code, value].
fn parameter(value: &Value) -> Result<TraceParameter> {
    Ok(TraceParameter { code: small(&value[1])?, value: small(&value[2])? })
}

fn compare_packets(
    case: &Value,
    program: &BuiltinTrace,
    instance: &dyn TraceInstance,
    memory: &Recorder,
    outcome: &mut Outcome,
) -> Result<()> {
    let log = memory.log();
    let parts = [
        ("start", instance.start(), program.start_commands()),
        ("stop", instance.stop(), program.stop_commands()),
    ];
    for (name, packet, ours) in parts {
        commands::compare(name, (&case["aql"][name], &case["ib"][name]), &packet, ours, &log, outcome)?;
    }
    outcome.compare("copies", &rows(&case["copies"])?, &log.copies_in);
    let stores = case.get("control_host_writes").map_or(Ok(0), |writes| list(writes).map(<[_]>::len))?;
    outcome.compare("control_host_writes", &stores, &log.stores.len());
    Ok(())
}

/// Fills the control buffer as the scenario says and compares what is handed out.
fn compare_scenario(
    scenario: &Value,
    instance: &dyn TraceInstance,
    memory: &Recorder,
    outcome: &mut Outcome,
) -> Result<()> {
    let label = scenario["label"].as_str().unwrap_or("?");
    let mut control = Vec::new();
    for record in rows(&scenario["control"])? {
        let start = control.len();
        for word in record {
            control.extend(u32::try_from(word)?.to_le_bytes());
        }
        control.resize(start + RECORD, 0);
    }
    {
        let mut log = memory.log();
        log.fill(0, &control);
        log.copies_out.clear();
    }
    let mut handed = Vec::new();
    let status = instance.iterate(&mut |se, bytes| {
        let first: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        handed.push((u64::from(se), bytes.len() as u64, first));
    });
    outcome.compare(format_args!("{label}.status"), &small(&scenario["status"])?, &status.0);
    let callback = |entry: &Value| {
        Ok((number(&entry[0])?, number(&entry[1])?, super::value::text(&entry[2])?.to_owned()))
    };
    let recorded = list(&scenario["callbacks"])?.iter().map(callback).collect::<Result<Vec<_>>>()?;
    outcome.compare(format_args!("{label}.callbacks"), &recorded, &handed);
    outcome.compare(format_args!("{label}.copies"), &rows(&scenario["copies"])?, &memory.log().copies_out);
    Ok(())
}
