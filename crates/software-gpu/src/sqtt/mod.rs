//! Thread-trace (SQTT) tokens of every generation as typed values, and their bits.
//!
//! [`gfx9`] and [`rdna`] (gfx10 and later) hold one `Token` type each; a token with the time since the one before writes
//! itself into a [`BitWriter`]. Nothing here reads bits or knows when a token is due, and no table is shared with any
//! decoder: captured streams, taken apart by other code, must come out again byte for byte (`xtask golden check
//! sqtt-encode`).
//!
//! ```
//! use wavescope_software_gpu::sqtt::BitWriter;
//! use wavescope_software_gpu::sqtt::rdna::{Layout, Token};
//!
//! let mut out = BitWriter::default();
//! Token::ValuInst { half: false, slot: 3 }.write(Layout::Gfx11, 1, &mut out);
//! out.pad(4);
//! assert_eq!(out.take(1), [0b00011_0_001_011]);
//! ```

mod bits;
pub mod gfx9;
pub mod rdna;
#[cfg(test)]
mod tests;

pub use bits::BitWriter;
