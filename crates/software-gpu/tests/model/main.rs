//! The model through its public interface: packets in, memory and truth out.

mod queues;
mod rig;
