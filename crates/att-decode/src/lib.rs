//! AMD thread-trace (SQTT) bytes to tokens, waves, instructions and occupancy, offline.

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
