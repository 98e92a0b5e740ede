//! AMD thread-trace (SQTT) bytes to tokens, waves, instructions and occupancy, offline.
//!
//! A *chunk* is what one shader engine wrote: [`Decoder::decode`] turns it into [`Record`]s, field for field those of
//! AMD's public decoder, for gfx9 (MI200, MI300, MI350), gfx10, gfx11, gfx12 and gfx1250. No plug-in, GPU or ROCm is
//! needed, and nothing is read or written: bytes in, records out. It must not know capture or HSA.
//!
//! Each layer is usable alone:
//!
//! | layer | type |
//! |---|---|
//! | bytes to tokens | [`Tokens`], printed by [`dump`] |
//! | tokens to records | [`Decoder`]; [`ChunkStream`] for chunks in pieces, [`Waves`] for waves on request, `decode_parallel` (feature `rayon`) for shader engines side by side |
//! | instructions to program counters | [`CodeObjects`] with our own instruction tables, or a disassembler of the caller's behind [`InstructionSource`] |
//! | dispatches and events without decoding | [`quick`] |
//! | records as text | [`jsonl`] |
//! | text to chunks, for tests | [`assemble`] |
//!
//! Damage is data, not an error: lost packets, cut ends and impossible tokens are [`Loss`] records with their place, and
//! [`Recovery::Resync`] goes on behind them where it can. Decoding takes time in proportion to the input and, with
//! [`Options::streaming`], fixed memory. Behaviour of the public decoder that looks accidental but shows in records is
//! kept; each has a name in `quirks.rs`.
//!
//! ```
//! use wavescope_att_decode::{Decoder, Generation, NoInstructions, Options, Record, assemble};
//!
//! let text = "HEADER version=3\nWAVE_START slot=5\n+20 VALU_INST slot=5\n+3 WAVE_END slot=5";
//! let chunk = assemble::chunk(Generation::Gfx11, text)?;
//! let mut waves = Vec::new();
//! Decoder::new(NoInstructions, Options::default()).decode(&chunk, &mut |record: Record<'_>| {
//!     if let Record::Wave(wave) = record {
//!         waves.push((wave.wave_id, wave.begin_time, wave.end_time, wave.instructions.len()));
//!     }
//! })?;
//! // The vector instruction, and the end of the program that has no token of its own.
//! assert_eq!(waves, [(5, 0, 23, 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![doc = include_str!("../docs/field-reports.md")]
#![doc = include_str!("../docs/speed.md")]
#![forbid(unsafe_code)]

pub mod assemble;
mod bits;
mod code_source;
mod decoder;
pub mod dump;
mod emit;
mod error;
mod generation;
mod gfx9;
pub mod jsonl;
mod marker;
mod occupancy;
mod options;
#[cfg(feature = "rayon")]
mod parallel;
mod program;
pub mod quick;
mod quirks;
mod rdna;
mod record;
mod session;
mod source;
mod stitch;
mod stream;
mod token;
mod wave;
mod waves;

pub use code_source::CodeObjects;
pub use decoder::Decoder;
pub use error::Error;
pub use generation::Generation;
pub use marker::{FunctionMap, MapEntry};
pub use options::{Limits, Options, Recovery};
#[cfg(feature = "rayon")]
pub use parallel::decode_parallel;
pub use record::*;
pub use source::{InstructionSource, LineTraits, NoInstructions, ProgramLine};
pub use stream::ChunkStream;
pub use token::{Token, TokenKind, Tokens};
pub use waves::{OwnedWave, Waves};
