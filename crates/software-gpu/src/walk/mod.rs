//! Waves walk the instructions of their kernel.
//!
//! A [`Program`] decodes code once, [`walk`] follows it from the entry to the end of one wave and gives a [`Path`]: the
//! instructions in order, each with the [`Work`] that it is to the hardware. Data are not computed. Where the way
//! depends on data, an [`Outcomes`] answers what the branch does: recorded outcomes ([`Recorded`]), or the model
//! ([`Seeded`]) with bounded trip counts.
//!
//! It must not know traces' bits or counters' numbers, nor where a wave runs.
//!
//! ```
//! use wavescope_isa::Target;
//! use wavescope_software_gpu::walk::{End, Program, Seeded, walk};
//!
//! // s_mov_b32 s0, 0; s_endpgm
//! let code: [u8; 8] = [0x80, 0, 0x80, 0xbe, 0, 0, 0x81, 0xbf];
//! let read = |address: u64, into: &mut [u8]| {
//!     let from = code.get(usize::try_from(address - 0x1000).unwrap_or(8)..).unwrap_or(&[]);
//!     let bytes = from.len().min(into.len());
//!     into[..bytes].copy_from_slice(&from[..bytes]);
//!     bytes
//! };
//! let mut program = Program::new(Target::Gfx942);
//! let path = walk(&mut program, &read, 0x1000, &mut Seeded::new(1, 0x1000), 100);
//! assert_eq!(path.end, End::Program);
//! assert_eq!(path.steps.iter().map(|step| step.pc).collect::<Vec<_>>(), [0x1000, 0x1004]);
//! ```
#![doc = "\n"]
#![doc = include_str!("timing.md")]

mod codes;
mod counts;
mod kernels;
mod outcome;
mod pace;
mod path;
mod program;
mod scalar;
#[cfg(test)]
mod tests;
mod timed;
mod walker;
mod work;

pub(crate) use codes::ONE_PASS;
pub use counts::Counts;
pub use kernels::GroupOutcomes;
pub(crate) use kernels::{Dispatch, Kernels};
pub use outcome::{Branch, Outcome, Outcomes, Recorded, Seeded};
pub use path::{Category, End, Flow, Path, Step, Stop};
pub use program::{Code, Program};
pub use timed::{Crowd, Timed, Times};
pub use walker::walk;
pub use work::{Detail, Unit, Wait, Work};
