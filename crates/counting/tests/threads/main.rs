//! The threads of counting and of interception. A program of its own with one test: it looks at all threads of the process.
#![cfg(not(loom))]

#[cfg(test)]
mod announced;
#[cfg(test)]
#[path = "../../../core/tests/threads/watch.rs"]
mod watch;
#[cfg(test)]
mod world;
