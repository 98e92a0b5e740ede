//! `codeobj.json`: code-object markers.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use wavescope_aql_profile::{Builtin, CodeObjectMarker, Memory, PacketPrograms, marker_commands};

use super::agent::shape;
use super::commands;
use super::memory::Recorder;
use super::value::{list, number, numbers, small};
use crate::golden::Outcome;

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    let agent = shape(&case["agent"], case.get("ip_discovery"))?;
    for entry in list(&case["markers"])? {
        let place = entry["name"].as_str().unwrap_or("marker");
        let marker = CodeObjectMarker {
            id: number(&entry["id"])?,
            address: number(&entry["addr"])?,
            bytes: number(&entry["size"])?,
            unload: number(&entry["is_unload"])? != 0,
            from_start: number(&entry["from_start"])? != 0,
        };
        let memory = Arc::new(Recorder::new(&entry["allocs"])?);
        let memory_object: Arc<dyn Memory> = Arc::clone(&memory) as Arc<dyn Memory>;
        let made = Builtin.marker(&agent, &marker, &memory_object);
        let status = made.as_ref().map_or_else(|error| error.status().0, |_| 0);
        outcome.compare(format_args!("{place}.status"), &small(&entry["status"])?, &status);
        let Ok(made) = made else { continue };
        memory.compare(&entry["allocs"], outcome)?;
        let ours = marker_commands(&agent, &marker)?;
        commands::compare(
            place,
            (&entry["aql"], &entry["ib"]),
            &made.packet(),
            &ours,
            &memory.log(),
            outcome,
        )?;
        outcome.compare(format_args!("{place}: copies"), &0, &memory.log().copies_in.len());
        drop(made);
        outcome.compare(
            format_args!("{place}.free_order"),
            &numbers(&entry["free_order"])?,
            &memory.log().freed,
        );
    }
    Ok(())
}
