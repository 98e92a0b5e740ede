//! The services' records as results: names instead of ids and addresses.

use anyhow::Context;
use wavescope_att_decode::CodeObjects;
use wavescope_core::{Agent, CounterId, CounterRecord, DispatchCounters, DispatchId, TraceChunk};
use wavescope_counting::Catalogue;
use wavescope_hsa_intercept::Interceptor;
use wavescope_workload::kernels;

use super::Machine;
use super::results::{CodeObject, Counter, Dispatch, Gpu, Reduction, Trace, Value};
use super::summary::summarize;

/// Looks names up at the interceptor.
pub(super) struct Names<'a>(pub(super) &'a Interceptor);

impl Names<'_> {
    fn kernel(&self, kernel_object: u64) -> String {
        let known = self.0.kernel(kernel_object);
        known.map_or_else(|| format!("kernel at {kernel_object:#x}"), |kernel| kernel.name.to_string())
    }

    /// A counted dispatch.
    pub(super) fn dispatch(&self, counters: DispatchCounters) -> Dispatch {
        let dispatch = counters.dispatch;
        Dispatch {
            dispatch: dispatch.id.0,
            queue: dispatch.queue.0,
            kernel: self.kernel(dispatch.kernel_object),
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
            start_ns: counters.times.start_ns,
            end_ns: counters.times.end_ns,
            counters: by_counter(&counters.records),
            lost: counters.lost.map(|reason| format!("{reason:?}")),
        }
    }
}

/// A delivered and decoded chunk; its dispatch was counted too, which gives the kernel.
pub(super) fn trace(
    chunk: TraceChunk,
    dispatches: &[Dispatch],
    target: &str,
    code: &[CodeObject],
    objects: &CodeObjects,
) -> Trace {
    let summary = summarize(&chunk.data, objects);
    let dispatch = chunk.dispatch.unwrap_or(DispatchId(0)).0;
    let counted = dispatches.iter().find(|counted| counted.dispatch == dispatch);
    Trace {
        context: chunk.context.0,
        dispatch,
        kernel: counted.map(|counted| counted.kernel.clone()).unwrap_or_default(),
        shader_engine: chunk.shader_engine,
        bytes: chunk.data.len(),
        buffer_full: chunk.flags.gpu_buffer_full,
        lost: chunk.flags.lost,
        waves: summary.waves,
        detailed_waves: summary.detailed_waves,
        peak_waves: summary.peak_waves,
        lifetime: summary.lifetime,
        instructions: summary.heat.instructions,
        hottest: summary.heat.hottest(target, code),
        remarks: summary.remarks,
        data: chunk.data,
    }
}

/// Groups records by counter, in the order of the counters' names, and reduces each group.
fn by_counter(records: &[CounterRecord]) -> Vec<Counter> {
    let mut records = records.to_vec();
    // Stable: within a counter the hardware's order of positions stays.
    records.sort_by_key(|record| record.counter);
    records.chunk_by(|a, b| a.counter == b.counter).map(|group| counter(group[0].counter, group)).collect()
}

fn counter(id: CounterId, records: &[CounterRecord]) -> Counter {
    let name = Catalogue::name_of(id).unwrap_or("unknown");
    // GRBM counts the clocks of its XCC: all run over the same time.
    let reduction = if name.starts_with("GRBM_") { Reduction::Max } else { Reduction::Sum };
    let values = records.iter().map(|record| record.value);
    let value = match reduction {
        Reduction::Sum => values.sum(),
        Reduction::Max => values.fold(0.0, f64::max),
    };
    let positions = records.iter().map(|record| Value {
        xcc: record.position.xcc,
        shader_engine: record.position.shader_engine,
        instance: record.position.instance,
        value: record.value,
    });
    Counter { name, reduction, value, positions: positions.collect() }
}

pub(super) fn gpu(agent: &Agent) -> Gpu {
    Gpu {
        target: agent.target.to_string(),
        name: agent.marketing_name.clone(),
        xcc: agent.xcc_count,
        shader_engines: agent.shader_engines,
        compute_units: agent.compute_units,
    }
}

/// The sample's code objects, in the order in which it loads them, with the addresses that the runtime gave them.
///
/// # Errors
/// The target has no kernels of ours.
pub(super) fn code_objects(machine: &Machine) -> anyhow::Result<Vec<CodeObject>> {
    let target = machine.agent()?.target.to_string();
    let contents = [("vectors", kernels::vectors(&target)?), ("tiles", kernels::tiles(&target)?)];
    let mut loaded = machine.interceptor.code_objects();
    loaded.sort_by_key(|code| code.loaded.id.0);
    let objects = contents.into_iter().enumerate().map(|(place, (name, content))| {
        let code = loaded.get(place).with_context(|| format!("the runtime does not show {name}"))?;
        let file = format!("{name}-{target}.co");
        let (id, load_address, bytes) = (code.loaded.id.0, code.loaded.base, code.loaded.size);
        Ok(CodeObject { id, file, load_address, bytes, content })
    });
    objects.collect()
}
