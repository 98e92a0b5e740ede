//! The threads of counting and of interception. A program of its own with one test: it looks at all threads of the process.
#![cfg(not(loom))]

#[cfg(test)]
mod announced;
#[cfg(test)]
#[path = "../suite/rig.rs"]
#[expect(dead_code, unused_macros, unused_imports, reason = "shared with the suite")]
mod rig;
#[cfg(test)]
#[path = "../../../core/tests/threads/watch.rs"]
mod watch;
