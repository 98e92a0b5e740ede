//! The API entries: C functions over the runtime's safe inside. Each turns handles and pointers into references once,
//! at its edge; what they may be is what the HSA specification demands of callers.

pub(super) mod agents;
pub(super) mod code;
pub(super) mod intercept;
pub(super) mod loader;
pub(super) mod memory;
pub(super) mod profiling;
pub(super) mod queues;
pub(super) mod signal_groups;
pub(super) mod signals;
pub(super) mod system;
