//! HSA API-table hooks, packet rewriting and completion

mod agent;
mod device;
mod engine;
mod error;
mod flight;
mod packets;
mod queue;
mod reaper;
mod rewrite;
mod serializer;
mod snapshot;
mod subscribers;
mod thread_mark;
mod times;

pub use device::{Device, Signal, SignalKind, Wait};
pub use engine::{Engine, QueueHandle};
pub use error::Error;
