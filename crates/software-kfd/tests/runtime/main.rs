//! The real, unmodified ROCm runtime on this driver. Each test runs itself in a process of its own, on ROCr with the
//! library preloaded; where ROCm's userland cannot be had it prints `NOT RUN` and why.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod dispatches;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod process;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod rig;
