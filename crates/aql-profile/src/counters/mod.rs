//! Counter sets: from events to counters, to commands, and back from values to events.

mod expand;
mod instance;
mod program;
mod read;
mod registers;
mod samples;
mod start;
mod stop;
mod warning;

pub use program::BuiltinCounters;
pub use samples::Sample;
pub use warning::Warning;
