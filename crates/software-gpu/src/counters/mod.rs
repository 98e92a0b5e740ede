//! Hardware counters, computed from the waves that ran.
//!
//! [`Monitor`] keeps running totals of everything that is modelled, per XCC; counter registers choose among them when
//! they are read ([`events`]). Totals start, stop and clear with CP_PERFMON_CNTL and become readable when it samples.

mod events;
mod instructions;
mod monitor;
mod requests;
#[cfg(test)]
mod tests;
mod totals;
mod walks;

pub(crate) use events::{Quantity, accumulate, quantity};
pub(crate) use instructions::Executed;
pub(crate) use monitor::{Gates, Monitor};
#[cfg(test)]
pub(crate) use totals::Totals;
