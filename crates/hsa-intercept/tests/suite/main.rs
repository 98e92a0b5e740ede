//! Interception on a scripted device: what is emitted, what retires, who runs.

mod common;
mod emission;
mod retirement;
mod serialization;
