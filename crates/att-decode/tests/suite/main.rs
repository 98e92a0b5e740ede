//! The decoder through its public interface: golden sets of every generation, chunking, loss and damage.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixtures has failed")]

mod cases;
mod field_reports;
mod fuzz;
mod golden;
mod properties;
mod stream;
mod support;
mod tails;
mod tokens;
mod waves;
