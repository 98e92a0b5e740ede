//! Why a packet program could not be made or read.

use std::path::PathBuf;

use wavescope_pm4::BlockId;

use crate::event::Event;
use crate::memory::AllocationRequest;
use crate::status::Status;

/// Every failure of this crate. [`Error::status`] gives what upstream's library answers in the same situation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No generation of ours drives this chip.
    #[error("no packet program exists for {gfxip}")]
    UnsupportedAgent {
        /// The chip's gfx name.
        gfxip: String,
    },
    /// The agent's numbers contradict each other (upstream's library divides by zero here).
    #[error(
        "{gfxip} with {xcc} XCCs, {se} shader engines and {sa_per_se} arrays per engine is no possible agent"
    )]
    ImpossibleAgent {
        /// The chip's gfx name.
        gfxip: String,
        /// XCCs given.
        xcc: u32,
        /// Shader engines given.
        se: u32,
        /// Shader arrays per engine given.
        sa_per_se: u32,
    },
    /// The chip has no such counter block (upstream's library crashes here).
    #[error("{gfxip} has no counter {block}")]
    UnknownBlock {
        /// The chip's gfx name.
        gfxip: &'static str,
        /// The block asked for.
        block: BlockId,
    },
    /// The chip has the block, but fewer instances of it.
    #[error("{event} names instance {instance}, {block} has {instances}", instance = event.instance)]
    UnknownInstance {
        /// The event.
        event: Event,
        /// The block's name.
        block: &'static str,
        /// Its instances.
        instances: u32,
    },
    /// More events than the block instance has counters.
    #[error("{event} is one too many: {block} has {counters} counters for each instance")]
    TooManyCounters {
        /// The first event without a counter.
        event: Event,
        /// The block's name.
        block: &'static str,
        /// Counters of one instance.
        counters: u32,
    },
    /// The announced counter has no registers (upstream's library aborts or reads out of bounds here).
    #[error("{event} would need counter {counter} of {block}, which has no registers")]
    NoCounterRegisters {
        /// The event.
        event: Event,
        /// The block's name.
        block: &'static str,
        /// The counter that was its turn.
        counter: u32,
    },
    /// The block lies on the I/O die, but its instances cannot be dealt out to the dies (upstream divides by zero).
    #[error("{block} has {instances} instances, which cannot be dealt out to {dies} dies")]
    UnknownDie {
        /// The block's name.
        block: &'static str,
        /// Its instances.
        instances: u32,
        /// Dies of the package.
        dies: u32,
    },
    /// Event flags on a block or a chip that has no accumulation.
    #[error("{event} asks for accumulation, which {block} of {gfxip} does not have")]
    NoAccumulation {
        /// The event.
        event: Event,
        /// The block's name.
        block: &'static str,
        /// The chip's gfx name.
        gfxip: &'static str,
    },
    /// A counter set without events.
    #[error("the counter set is empty")]
    NoEvents,
    /// A trace parameter that the library version does not know.
    #[error("trace parameter {code} is not known")]
    UnknownParameter {
        /// The parameter's code.
        code: u32,
    },
    /// The target compute unit or work-group processor does not fit the trace.
    #[error("target {target} is beyond the 16 that thread trace can name")]
    TargetOutOfRange {
        /// The value given.
        target: u32,
    },
    /// More trace performance counters than the eight that exist.
    #[error("more than {limit} trace performance counters")]
    TooManyTraceCounters {
        /// How many there are.
        limit: usize,
    },
    /// The part of the trace buffer that each selected engine gets is outside the hardware's limits.
    #[error("each engine would get {step} bytes of trace buffer, allowed are {least} to {below} (exclusive)")]
    TraceBufferSize {
        /// Bytes for each selected engine.
        step: u64,
        /// The least allowed.
        least: u64,
        /// The first size that is too large.
        below: u64,
    },
    /// Several trace buffers where the chip, the engine mask or the implementation has only one.
    #[error("{buffers} trace buffers need gfx9 or gfx12 and exactly one engine in mask {mask:#x}")]
    TraceBuffers {
        /// Buffers asked for.
        buffers: u32,
        /// The engine mask.
        mask: u64,
    },
    /// An engine that has no buffer ring in this trace.
    #[error("shader engine {se} has no ring of trace buffers")]
    NoBufferRing {
        /// The engine.
        se: u32,
    },
    /// The body of a PRED_EXEC is longer than its field (upstream's library lets the count wrap).
    #[error("{dwords} dwords for one XCC are more than the {limit} that can be conditional: split the set")]
    ConditionalTooLong {
        /// Dwords of the body.
        dwords: usize,
        /// What the field holds.
        limit: u32,
    },
    /// The commands are longer than the packet's size field.
    #[error("{dwords} dwords of commands do not fit one indirect buffer of {limit}: split the set")]
    CommandsTooLong {
        /// Dwords of the command buffer.
        dwords: usize,
        /// What the field holds.
        limit: u32,
    },
    /// The caller's allocator refused.
    #[error("allocating {} bytes failed: {status}", request.bytes)]
    Allocation {
        /// What was asked for.
        request: AllocationRequest,
        /// The allocator's answer.
        status: Status,
    },
    /// The allocator returned trace memory that the hardware cannot address.
    #[error("trace buffer at {address:#x} is not aligned to 4 KiB")]
    MisalignedTraceBuffer {
        /// Where it lies.
        address: u64,
    },
    /// A value callback ended the iteration with an error.
    #[error("the value callback answered {status}")]
    Callback {
        /// Its answer.
        status: Status,
    },
    /// `WAVESCOPE_AQLPROFILE` has a value without a meaning.
    #[error("WAVESCOPE_AQLPROFILE={value:?} is none of builtin, native, auto")]
    UnknownChoice {
        /// The value found.
        value: String,
    },
    /// The installed library is not there.
    #[error("{library} was not found in {}: {reason}", display_paths(searched))]
    LibraryMissing {
        /// Its file name.
        library: &'static str,
        /// Where it was looked for.
        searched: Vec<PathBuf>,
        /// The loader's own words.
        reason: String,
    },
    /// The installed library is older than the API used.
    #[error("{library} at {} has version {found}, needed is {needed}", path.display())]
    LibraryTooOld {
        /// Its file name.
        library: &'static str,
        /// Where it was found.
        path: PathBuf,
        /// Its version, or what is missing.
        found: String,
        /// The oldest that serves.
        needed: &'static str,
    },
    /// The library may only be used where the real HSA runtime runs (upstream's library aborts here).
    #[error("{library} needs the HSA runtime to be loaded and initialised: {reason}")]
    RuntimeNotInitialised {
        /// Its file name.
        library: &'static str,
        /// What is missing.
        reason: String,
    },
    /// A call of the installed library failed.
    #[error("{call} failed: {status}")]
    LibraryCall {
        /// The function.
        call: &'static str,
        /// Its answer.
        status: Status,
    },
}

fn display_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() { "the loader's search path".to_owned() } else { paths.join(", ") }
}

impl Error {
    /// The status that upstream's library answers; where it crashes, the one of its own validation.
    pub const fn status(&self) -> Status {
        match self {
            Self::NoAccumulation { .. }
            | Self::UnknownParameter { .. }
            | Self::TooManyTraceCounters { .. }
            | Self::TraceBuffers { .. }
            | Self::NoBufferRing { .. }
            | Self::MisalignedTraceBuffer { .. }
            | Self::UnknownChoice { .. } => Status::INVALID_ARGUMENT,
            Self::Allocation { status, .. }
            | Self::Callback { status }
            | Self::LibraryCall { status, .. } => *status,
            _ => Status::ERROR,
        }
    }
}
