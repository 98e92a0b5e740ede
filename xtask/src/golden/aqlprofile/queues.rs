//! `queue-enable.json`: what a new queue gets through the old API.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use wavescope_aql_profile::{Memory, QueueCommand, QueuePacket};

use super::agent::shape;
use super::commands::compare_dwords;
use super::memory::Recorder;
use super::value::{dwords, number, small, text};
use crate::golden::Outcome;

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    // The commands depend on the chip's generation and bases alone.
    let agent = json!({ "gfxip": text(&case["agent"])?, "xcc": 1, "se": 1, "cu": 2, "sa_per_se": 1 });
    let agent = shape(&agent, case.get("ip_discovery"))?;
    for (name, entry) in case["cmds"].as_object().context("cmds is no object")? {
        let command = match small(&entry["attribute"])? {
            6 => QueueCommand::Enable,
            7 => QueueCommand::Disable,
            8 => QueueCommand::WaitIdle,
            other if small(&entry["status"])? != 0 => {
                // An attribute that exists in neither API: ours has no such command to ask for.
                outcome.compare(format_args!("{name}.status"), &small(&entry["status"])?, &0x1000);
                outcome.compare(format_args!("{name}.attribute is unknown"), &true, &(other > 8));
                continue;
            }
            other => bail!("attribute {other} succeeds, but no queue command of ours has it"),
        };
        let memory = Arc::new(Recorder::new(&json!([{ "base": entry["base"] }]))?);
        let memory_object: Arc<dyn Memory> = Arc::clone(&memory) as Arc<dyn Memory>;
        let packet = QueuePacket::new(&agent, command, &memory_object)?;
        outcome.compare(format_args!("{name}.status"), &number(&entry["status"])?, &0);
        outcome.compare(format_args!("{name}.status_size_query"), &number(&entry["status_size_query"])?, &0);
        outcome.compare(format_args!("{name}.size"), &number(&entry["size"])?, &packet.buffer.bytes());
        compare_dwords(&format!("{name}.aql"), &dwords(&entry["aql"])?, &packet.packet.0, outcome);
        let recorded = dwords(&entry["ib"])?;
        let found = memory.log().dwords(0, 0, packet.buffer.bytes() / 4);
        compare_dwords(&format!("{name}.ib"), &recorded, &found, outcome);
    }
    Ok(())
}
