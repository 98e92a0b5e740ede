//! Counting through intercepted queues of the in-process software GPU.

#[cfg(test)]
mod blind;
#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod code_objects;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod dependent;
#[cfg(test)]
mod entries;
#[cfg(test)]
mod internal;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod loading;
#[cfg(test)]
mod overlap;
#[cfg(test)]
mod packets;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod records;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod signals;
#[cfg(test)]
#[path = "../system_calls/strace.rs"]
mod strace;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod system_calls;
#[cfg(test)]
mod times;
#[cfg(test)]
mod tracing;
