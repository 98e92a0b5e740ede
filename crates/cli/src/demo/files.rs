//! The results as files that other tools open.

use std::path::Path;

use anyhow::Context;
use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::{CodeObjects, Decoder, Options};

use super::results::{Dispatch, Results, Trace};
use crate::input::write_file;

/// Writes `counters.csv`, `results.json`, the code objects, and for each trace its bytes (`.sqtt`) and records
/// (`.jsonl`).
///
/// # Errors
/// Names the file that could not be written.
pub(crate) fn write(results: &Results, folder: &Path) -> anyhow::Result<()> {
    write_counters(&results.dispatches, &folder.join("counters.csv"))?;
    write_file(&folder.join("results.json"), &serde_json::to_vec_pretty(results)?)?;
    let mut code = CodeObjects::new();
    for object in &results.code_objects {
        write_file(&folder.join(&object.file), object.content)?;
        code.add(object.content, Some(object.load_address), None)?;
    }
    for trace in &results.traces {
        write_trace(trace, &code, folder)?;
    }
    Ok(())
}

/// One row a dispatch, one column a counter; sizes as x, y, z. Times in nanoseconds.
fn write_counters(dispatches: &[Dispatch], path: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut csv = csv::Writer::from_path(path).with_context(failed)?;
    let fixed = "Dispatch_Id Queue_Id Kernel_Name Grid_Size_X Grid_Size_Y Grid_Size_Z Workgroup_Size_X \
                 Workgroup_Size_Y Workgroup_Size_Z Start_Timestamp End_Timestamp";
    let counted = dispatches.iter().find(|dispatch| !dispatch.counters.is_empty());
    let counters = counted.map(|dispatch| &dispatch.counters[..]).unwrap_or_default();
    let header = fixed.split_whitespace().chain(counters.iter().map(|counter| counter.name));
    csv.write_record(header).with_context(failed)?;
    for dispatch in dispatches {
        let mut row =
            vec![dispatch.dispatch.to_string(), dispatch.queue.to_string(), dispatch.kernel.clone()];
        row.extend(dispatch.grid.map(|side| side.to_string()));
        row.extend(dispatch.workgroup.map(|side| side.to_string()));
        row.extend([dispatch.start_ns, dispatch.end_ns].map(|time| time.to_string()));
        let value = |place: usize| dispatch.counters.get(place).map(|counter| counter.value.to_string());
        row.extend((0..counters.len()).map(|place| value(place).unwrap_or_default()));
        csv.write_record(row).with_context(failed)?;
    }
    csv.flush().with_context(failed)
}

fn write_trace(trace: &Trace, code: &CodeObjects, folder: &Path) -> anyhow::Result<()> {
    let name = format!("dispatch{}_se{}", trace.dispatch, trace.shader_engine);
    let sqtt = format!("{name}.sqtt");
    write_file(&folder.join(&sqtt), &trace.data)?;
    let mut lines = JsonLines::new(Vec::new());
    lines.chunk(&sqtt, trace.shader_engine, trace.data.len());
    let result = Decoder::new(code.clone(), Options::default()).decode(&trace.data, &mut lines);
    lines.status(result);
    write_file(&folder.join(format!("{name}.jsonl")), &lines.finish()?)
}
