//! Counting through intercepted queues of the in-process software GPU.

#[cfg(test)]
mod counters;
#[cfg(test)]
mod entries;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod stress;
