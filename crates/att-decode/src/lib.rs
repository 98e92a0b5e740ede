//! AMD thread-trace (SQTT) bytes to tokens, waves, instructions and occupancy, offline.

mod bits;
mod error;
mod generation;
mod token;

pub use error::Error;
pub use generation::Generation;
pub use token::{Token, TokenKind, Tokens};
