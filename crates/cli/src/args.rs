//! The command line as clap sees it; the help texts are written to teach.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Count and trace AMD GPU kernels, decode thread traces.
#[derive(Debug, Parser)]
#[command(
    name = "wavescope",
    version,
    after_help = "Diagnostics: set WAVESCOPE_LOG, for example WAVESCOPE_LOG=debug.\n\
                  Exit codes: 0 success, 1 the work failed, 2 bad input."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Count and trace a small workload on the built-in software GPU
    ///
    /// Loads kernels onto a GPU in software, dispatches them on two queues, counts SQ_WAVES, GRBM_COUNT and
    /// GRBM_GUI_ACTIVE for each, traces some with SQTT, decodes the traces, and prints both. No GPU and no
    /// ROCm installation is needed.
    ///
    /// With `--out` the folder holds counters.csv (a row a dispatch, a column a counter), results.json (what `--json`
    /// prints), the code objects, placement.jsonl (where the software GPU put each wave), and for each traced dispatch
    /// its bytes (.sqtt) and its records (.jsonl, as `wavescope decode` prints them).
    #[command(after_help = "Example:\n  wavescope demo --contexts 2 --out /tmp/demo")]
    Demo(DemoArgs),
    /// Decode captured thread-trace data (SQTT) to records, offline
    ///
    /// Each FILE is one chunk, normally all data of one shader engine, and is decoded with fresh state. Records
    /// come in the order of the files, a `chunk` record before those of each file and a `status` record behind them.
    /// Records of a damaged file are printed up to the damage. The objects of `--format jsonl` stay as
    /// FORMATS.md lists them; `--format text` is for people and may change.
    #[command(
        after_help = "Examples:\n  wavescope decode --gfx gfx942 --sqtt se0.att\n  wavescope decode --gfx gfx1100 \
                      --sqtt se0.sqtt se1.sqtt --code-object kernel.co@0x7f3c00000000 --format text"
    )]
    Decode(DecodeArgs),
    /// Print the tokens of a thread trace with offsets, fields and times
    ///
    /// A line a token, its columns apart by tabs: bit offset, kind, length in bits, time, the bits in hexadecimal, the
    /// fields by name. With `--json` an object a token: file, bit_offset, kind, bits, time, raw, fields.
    #[command(after_help = "Example:\n  wavescope tokens se0.sqtt | head")]
    Tokens(TokensArgs),
    /// Print a PM4 command buffer with register and field names
    ///
    /// FILE holds little-endian dwords, the same as hexadecimal text, or a recorded case of the golden packets (JSON).
    #[command(after_help = "Example:\n  wavescope pm4 --gfx gfx942 commands.bin")]
    Pm4(Pm4Args),
    /// List GPU agents, supported targets or counters
    #[command(
        after_help = "Examples:\n  wavescope list agents\n  wavescope list counters --gfx gfx942\n  wavescope list \
                      targets --json"
    )]
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The chip to model
    #[arg(long, default_value = "gfx942", value_name = "TARGET")]
    pub(crate) gpu: String,
    /// How many tracing contexts share the agent's one trace queue and one output slot
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub(crate) contexts: u32,
    /// Write counters (CSV, JSON), traces (.sqtt) and decoded records (JSON lines) into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DecodeArgs {
    /// The chip that the trace was captured on, for example gfx942
    #[arg(long, value_name = "TARGET")]
    pub(crate) gfx: String,
    /// Trace files, one chunk each
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    pub(crate) sqtt: Vec<PathBuf>,
    /// A code object as FILE@LOAD_ADDRESS (decimal or 0x hexadecimal); may be repeated
    #[arg(long, num_args = 1.., value_name = "FILE@ADDRESS")]
    pub(crate) code_object: Vec<String>,
    /// How records are printed
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// Aligned text for people
    Text,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TokensArgs {
    /// Trace files, one chunk each
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print one JSON object a token
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pm4Args {
    /// The command buffer
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The chip that it is for; a recorded case says it itself
    #[arg(long, value_name = "TARGET")]
    pub(crate) gfx: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    pub(crate) what: ListWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ListWhat {
    /// The GPU agents of a machine
    Agents {
        /// A KFD topology folder
        #[arg(long, default_value = "/sys/class/kfd/kfd/topology", value_name = "DIR")]
        topology: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The chips that Wavescope knows, and what it can do on each
    Targets {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The counters of a chip
    Counters {
        /// The chip, for example gfx942
        #[arg(long, value_name = "TARGET")]
        gfx: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
