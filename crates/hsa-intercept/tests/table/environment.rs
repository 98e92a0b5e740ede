//! What `WAVESCOPE_INTERCEPT` asks for, in processes that have it in their environment.

use std::process::Command;

use wavescope_hsa_intercept::{Options, Technique};

use crate::application::*;
use crate::runtime::{Runtime, object};
use crate::service::kernel;

/// Set in a process of the test below, with what to expect.
const EXPECTED: &str = "WAVESCOPE_EXPECTED_TECHNIQUE";

#[test]
fn the_environment_chooses_the_technique() {
    if let Ok(expected) = std::env::var(EXPECTED) {
        return is_chosen(&expected);
    }
    let test = "environment::the_environment_chooses_the_technique";
    let cases = [
        (Some("runtime"), "Runtime"),
        (Some("doorbell"), "Doorbell"),
        (Some("auto"), "Doorbell"),
        (Some(""), "Doorbell"),
        (Some("Runtime!"), "Doorbell"),
        (None, "Doorbell"),
    ];
    for (value, expected) in cases {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(EXPECTED, expected);
        match value {
            Some(value) => command.env(Technique::VARIABLE, value),
            None => command.env_remove(Technique::VARIABLE),
        };
        let status = command.status().unwrap();
        assert!(status.success(), "{value:?} is not {expected}");
    }
}

/// The interceptor says so, and its queues are of that kind: a front is not the queue that the runtime made.
fn is_chosen(expected: &str) {
    let runtime = Runtime::start();
    let interceptor = runtime.install_with(Options::default());
    let technique = interceptor.technique().unwrap();
    assert_eq!(format!("{technique:?}"), expected);
    let queue = runtime.queue(64);
    let is_runtimes_own = std::ptr::eq(object(queue).pointer(), queue);
    assert_eq!(is_runtimes_own, technique == Technique::Runtime);
    runtime.submit(queue, &[kernel(1, 0)]);
    runtime.run_until(|| ran(queue) == [1]);
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
}
