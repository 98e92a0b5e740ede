//! Runs programs and tests on the real, unmodified ROCm runtime above the software GPU.
//!
//! [`Sysroot`] is a folder outside the repository with ROCm's userland, unpacked once; [`Gpus`] a topology folder that
//! says which GPUs there are; [`Machine`] both together with the preloaded kernel driver, from which commands are made.
//! [`rerun()`] lets a test run itself there, where [`runtime_table`] is the API table that tools get. Where the userland
//! cannot be had, tests say `NOT RUN` and why.
//!
//! ```no_run
//! use wavescope_on_rocr::{Gpus, Machine, Profile};
//!
//! let machine = Machine::new(Profile::Libs, &"gfx942-x8".parse::<Gpus>()?)?;
//! assert!(machine.command("target/debug/my-hsa-program").status()?.success());
//! assert!(machine.command_in_root("rocminfo", &[]).status()?.success());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It must not know what runs there.

mod error;
mod gpus;
mod libraries;
mod machine;
mod origin;
mod rerun;
mod sysroot;
mod table;

pub use error::Error;
pub use gpus::Gpus;
pub use libraries::Library;
pub use machine::Machine;
pub use rerun::{Place, not_run, rerun, rerun_with};
pub use sysroot::{Profile, Sysroot};
pub use table::runtime_table;
