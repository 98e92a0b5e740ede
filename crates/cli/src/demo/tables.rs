//! The results for people.

use std::io::{self, Write};

use super::results::{Dispatch, Losses, Reduction, Results, Trace};
use crate::output::Table;

/// Prints a table of dispatches, a table of traces, and what the contexts share.
///
/// # Errors
/// What `out` answered.
pub(crate) fn print(results: &Results, out: &mut impl Write) -> io::Result<()> {
    let gpu = &results.gpu;
    writeln!(
        out,
        "{} ({}) in software: {} XCC, {} shader engines, {} compute units\n",
        gpu.target, gpu.name, gpu.xcc, gpu.shader_engines, gpu.compute_units
    )?;
    writeln!(out, "Counted: {} dispatches", results.dispatches.len())?;
    dispatches(&results.dispatches).write(out)?;
    writeln!(
        out,
        "\nTraced: {} dispatches, shader engine 0, compute unit 0 in detail",
        results.traces.len()
    )?;
    traces(&results.traces).write(out)?;
    results.traces.iter().try_for_each(|trace| remarks(trace, out))?;
    if results.traces.iter().any(|trace| !trace.hottest.is_empty()) {
        writeln!(out, "\nHottest instructions of the waves in detail")?;
        hottest(&results.traces).write(out)?;
    }
    missing(results.losses, out)?;
    let shared = &results.shared;
    writeln!(
        out,
        "\n{} tracing contexts shared {} submission queue and {} output slot of {} KiB",
        shared.contexts,
        shared.submission_queues,
        shared.output_slots,
        shared.output_bytes / 1024
    )
}

fn remarks(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    if trace.lost {
        writeln!(out, "dispatch {}: its trace never ended and could not be read", trace.dispatch)?;
    }
    if trace.buffer_full {
        writeln!(out, "dispatch {}: the trace buffer was full, the trace is cut off", trace.dispatch)?;
    }
    trace.remarks.iter().try_for_each(|remark| writeln!(out, "dispatch {}: {remark}", trace.dispatch))
}

fn missing(losses: Losses, out: &mut impl Write) -> io::Result<()> {
    if losses == Losses::default() {
        return Ok(());
    }
    let Losses { dispatches, traces, records } = losses;
    writeln!(
        out,
        "\nMissing: {dispatches} dispatches not counted, {traces} not traced, {records} records dropped"
    )
}

fn dispatches(dispatches: &[Dispatch]) -> Table {
    let mut titles =
        vec!["dispatch".to_owned(), "queue".into(), "kernel".into(), "grid".into(), "workgroup".into()];
    if let Some(first) = dispatches.iter().find(|dispatch| !dispatch.counters.is_empty()) {
        titles.extend(first.counters.iter().map(|counter| {
            let how = if counter.reduction == Reduction::Sum { "sum" } else { "max" };
            format!("{} ({how})", counter.name)
        }));
    }
    titles.push("time us".into());
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for dispatch in dispatches {
        let mut row = vec![
            dispatch.dispatch.to_string(),
            dispatch.queue.to_string(),
            dispatch.kernel.clone(),
            extent(dispatch.grid),
            extent(dispatch.workgroup),
        ];
        row.extend(dispatch.counters.iter().map(|counter| counter.value.to_string()));
        row.extend(dispatch.lost.iter().map(|reason| format!("lost: {reason}")));
        row.push(format!("{:.2}", dispatch.end_ns.saturating_sub(dispatch.start_ns) as f64 / 1000.0));
        table.row(row);
    }
    table
}

fn traces(traces: &[Trace]) -> Table {
    let mut table = Table::new(&[
        "dispatch",
        "kernel",
        "context",
        "bytes",
        "waves",
        "in detail",
        "at once",
        "shortest",
        "median",
        "longest life",
    ]);
    for trace in traces {
        let mut row = vec![
            trace.dispatch.to_string(),
            trace.kernel.clone(),
            trace.context.to_string(),
            trace.bytes.to_string(),
            trace.waves.to_string(),
            trace.detailed_waves.to_string(),
            trace.instructions.to_string(),
            trace.peak_waves.to_string(),
        ];
        if let Some(life) = trace.lifetime {
            row.extend([life.shortest, life.median, life.longest].map(|clocks| clocks.to_string()));
        }
        table.row(row);
    }
    table
}

fn hottest(traces: &[Trace]) -> Table {
    let mut table = Table::new(&["dispatch", "place", "instruction", "hits", "clocks"]);
    for trace in traces {
        for hot in &trace.hottest {
            table.row([
                trace.dispatch.to_string(),
                format!("{} + {:#x}", hot.kernel, hot.offset),
                hot.mnemonic.clone(),
                hot.hits.to_string(),
                hot.clocks.to_string(),
            ]);
        }
    }
    table
}

fn extent<T: ToString>(extent: [T; 3]) -> String {
    extent.map(|side| side.to_string()).join("x")
}
