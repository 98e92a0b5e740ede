//! Random kernels on random grids: what a trace decodes to is what the log says the waves walked.
//!
//! Programs hold loops, branches forwards, far jumps, calls and barriers between instructions of all kinds, in waves of 32
//! and of 64 where the chip has both.

#![cfg(test)]

mod alone;
mod decoded;
mod faces;
mod programs;

/// Programs for each machine.
const PROGRAMS: u32 = 20;
/// Bytes of the descriptor and of what lies before the code.
const CODE: usize = 256;
/// Place in the descriptor of the word with ENABLE_WAVEFRONT_SIZE32, and that bit (LLVM, AMDGPU usage: kernel descriptor).
const PROPERTIES: usize = 56;
const WAVES_OF_32: u16 = 1 << 10;
