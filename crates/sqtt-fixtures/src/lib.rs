//! Reads the golden sets that thread-trace decoding is checked against.
//!
//! A [`Set`] is a folder: raw chunks, the program as disassembly and often as a code object, and what a correct
//! decoder makes of them. [`Set`] finds and reads the files, [`Kernel`] looks instructions up the way the goldens
//! were made. For tests, benches and chores only; it knows files, not the decoder.
//!
//! ```no_run
//! use std::path::Path;
//! for set in wavescope_sqtt_fixtures::sets_below(Path::new("tests/data"), "golden.jsonl")? {
//!     println!("{}: {} chunks", set.name, set.chunks()?.len());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod files;
mod kernel;
mod set;

pub use files::{read_text, shared_sets};
pub use kernel::{Kernel, find_line};
pub use set::{Chunk, Set, sets_below};
