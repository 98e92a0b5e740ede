//! AMD thread-trace (SQTT) bytes to tokens, waves, instructions and occupancy, offline.

mod bits;
mod code_source;
mod decoder;
pub mod dump;
mod emit;
mod error;
mod generation;
mod gfx9;
pub mod jsonl;
mod occupancy;
mod program;
pub mod quick;
mod rdna;
mod record;
mod session;
mod source;
mod stitch;
mod token;
mod wave;

pub use code_source::CodeObjects;
pub use decoder::{Decoder, Options};
pub use error::Error;
pub use generation::Generation;
pub use record::*;
pub use source::{InstructionSource, LineTraits, NoInstructions, ProgramLine};
pub use token::{Token, TokenKind, Tokens};
