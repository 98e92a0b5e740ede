//! The in-process runtime, seen through its table by an application and by a tool.

#[cfg(test)]
mod code;
#[cfg(test)]
mod dispatches;
#[cfg(test)]
mod intercept;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod statuses;
