//! The model through its public interface: packets in, memory and truth out.

mod counters;
mod queues;
mod recorded;
mod rig;
