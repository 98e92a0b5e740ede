//! Announcements of threads. A program of its own with one test: it looks at all threads of the process.
#![cfg(not(loom))]

#[cfg(test)]
mod announced;
#[cfg(test)]
mod watch;
