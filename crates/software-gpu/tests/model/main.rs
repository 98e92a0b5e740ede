//! The model through its public interface: packets in, memory and truth out.

#[cfg(test)]
mod counters;
#[cfg(test)]
mod devices;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod overlap;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod trace_mutations;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod walks;
