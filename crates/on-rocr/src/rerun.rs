//! Tests that run themselves on the real runtime.
//!
//! ```no_run
//! # fn hsa_init_works() -> bool { true }
//! use wavescope_on_rocr::{Gpus, Place, Profile, not_run, rerun};
//!
//! fn runtime_starts() {
//!     let gpus: Gpus = "gfx942".parse().unwrap();
//!     match rerun("runtime_starts", Profile::Libs, &gpus).unwrap() {
//!         Place::OnRuntime => assert!(hsa_init_works()),
//!         Place::Outside => {}
//!     }
//! }
//! ```

use std::process::Command;

use crate::{Error, Gpus, Machine, Profile};

/// Set in the process that runs on the real runtime.
const INSIDE: &str = "WAVESCOPE_ON_ROCR";

/// Where a test finds itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the real runtime: now is the time to test.
    OnRuntime,
    /// In the test runner's process. The test has passed on the real runtime, or could not run there and said so.
    Outside,
}

/// Runs the test `name` of this very test program on the real runtime, in a process of its own.
///
/// # Errors
/// [`Error::Test`] if it failed there.
pub fn rerun(name: &str, profile: Profile, gpus: &Gpus) -> Result<Place, Error> {
    rerun_with(name, profile, gpus, |_| {})
}

/// As [`rerun()`], with a word in how the process is started: variables of its environment.
///
/// # Errors
/// As [`rerun()`].
pub fn rerun_with(
    name: &str,
    profile: Profile,
    gpus: &Gpus,
    prepare: impl FnOnce(&mut Command),
) -> Result<Place, Error> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(Place::OnRuntime);
    }
    let machine = match Machine::new(profile, gpus) {
        Ok(machine) => machine,
        Err(error) => {
            not_run(&error);
            return Ok(Place::Outside);
        }
    };
    let program = std::env::current_exe().map_err(|source| Error::Run { program: name.into(), source })?;
    let mut command = machine.command_with_table(program);
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    prepare(&mut command);
    let status = command.status().map_err(|source| Error::Run { program: name.into(), source })?;
    if status.success() { Ok(Place::Outside) } else { Err(Error::Test { test: name.into(), status }) }
}

/// Says that a test could not run, and why. `cargo xtask ci --long` takes that for a failure.
pub fn not_run(error: &Error) {
    println!("NOT RUN: {}", error.chain());
}
