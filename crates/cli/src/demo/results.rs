//! What a run gives, as it is printed and written.

use serde::Serialize;

/// Everything.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// The software GPU.
    pub(crate) gpu: Gpu,
    /// Every dispatch, in the order in which they were enqueued.
    pub(crate) dispatches: Vec<Dispatch>,
    /// Every trace, in the order of delivery.
    pub(crate) traces: Vec<Trace>,
    /// Resources that all contexts share on the agent.
    pub(crate) shared: Shared,
    /// What is missing; all zero when nothing is.
    pub(crate) losses: Losses,
    /// Code that was loaded, for `wavescope decode --code-object`.
    pub(crate) code_objects: Vec<CodeObject>,
}

/// What was meant to be measured and was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Losses {
    /// Dispatches that were skipped for want of a program instance, or never completed.
    pub(crate) dispatches: u64,
    /// Traces that were skipped, or whose data could not be read.
    pub(crate) traces: u64,
    /// Records that a full stream dropped.
    pub(crate) records: u64,
}

/// The agent.
#[derive(Debug, Serialize)]
pub(crate) struct Gpu {
    pub(crate) target: String,
    pub(crate) name: String,
    pub(crate) xcc: u32,
    pub(crate) shader_engines: u32,
    pub(crate) compute_units: u32,
}

/// A counted dispatch.
#[derive(Debug, Serialize)]
pub(crate) struct Dispatch {
    pub(crate) dispatch: u64,
    pub(crate) queue: u64,
    pub(crate) kernel: String,
    pub(crate) grid: [u32; 3],
    pub(crate) workgroup: [u16; 3],
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) counters: Vec<Counter>,
    /// Why there are no values, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<String>,
}

/// One counter of a dispatch.
#[derive(Debug, Serialize)]
pub(crate) struct Counter {
    pub(crate) name: &'static str,
    /// How the values at all positions become one.
    pub(crate) reduction: Reduction,
    pub(crate) value: f64,
    pub(crate) positions: Vec<Value>,
}

/// A value where it was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Value {
    pub(crate) xcc: u16,
    pub(crate) shader_engine: u16,
    pub(crate) instance: u16,
    pub(crate) value: f64,
}

/// How values at several positions become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reduction {
    /// Events: they add up.
    Sum,
    /// Clocks: they run side by side.
    Max,
}

/// A decoded trace of one shader engine for one dispatch.
#[derive(Debug, Serialize)]
pub(crate) struct Trace {
    pub(crate) context: u64,
    pub(crate) dispatch: u64,
    pub(crate) kernel: String,
    pub(crate) shader_engine: u32,
    pub(crate) bytes: usize,
    /// The trace is cut off: the buffer was full.
    pub(crate) buffer_full: bool,
    /// The trace never retired and its data could not be read.
    pub(crate) lost: bool,
    /// Waves that started on the shader engine.
    pub(crate) waves: usize,
    /// Waves of the compute unit that was traced in detail.
    pub(crate) detailed_waves: usize,
    /// Most waves at one time.
    pub(crate) peak_waves: usize,
    /// Life of a wave in shader clocks.
    pub(crate) lifetime: Option<Lifetime>,
    /// Instructions of the waves in detail.
    pub(crate) instructions: usize,
    /// Where most of their time went.
    pub(crate) hottest: Vec<Hot>,
    /// What is missing or damaged, as the decoder says it.
    pub(crate) remarks: Vec<String>,
    #[serde(skip)]
    pub(crate) data: Vec<u8>,
}

/// An instruction that took much time.
#[derive(Debug, Serialize)]
pub(crate) struct Hot {
    pub(crate) code_object: u64,
    /// Address relative to where the code object was loaded.
    pub(crate) address: u64,
    pub(crate) kernel: String,
    /// Offset in the kernel, bytes.
    pub(crate) offset: u64,
    pub(crate) mnemonic: String,
    /// How often it was issued.
    pub(crate) hits: u64,
    /// Shader clocks of all issues, stalls included.
    pub(crate) clocks: u64,
}

/// Shortest, middle and longest life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Lifetime {
    pub(crate) shortest: u64,
    pub(crate) median: u64,
    pub(crate) longest: u64,
}

/// What all tracing contexts share on the agent.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Shared {
    pub(crate) contexts: u32,
    pub(crate) submission_queues: usize,
    pub(crate) output_slots: usize,
    pub(crate) output_bytes: u64,
}

/// A code object and where it was loaded.
#[derive(Debug, Serialize)]
pub(crate) struct CodeObject {
    pub(crate) id: u64,
    pub(crate) file: String,
    pub(crate) load_address: u64,
    pub(crate) bytes: u64,
    #[serde(skip)]
    pub(crate) content: &'static [u8],
}
