//! Many producers, queues and agents, with measurement switched on and off every few milliseconds, and queues that come and
//! go: each kernel runs once, each that was dispatched inside a window is recorded once, and none outside.
//!
//! Seconds by default; a million dispatches under nextest's profile `stress`.

#[cfg(test)]
mod gpu;
#[cfg(test)]
mod toggled;
