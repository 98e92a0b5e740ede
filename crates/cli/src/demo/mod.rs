//! The demonstration: a workload on a software GPU, counted and traced by the services that a profiler uses.
//!
//! [`machine`] puts runtime, interception and application together, [`session`] runs the workload under the services,
//! [`summary`] decodes what was traced, [`tables`] and [`files`] show and keep the results.

mod convert;
mod files;
mod hottest;
mod machine;
mod metered;
mod results;
mod session;
mod summary;
mod tables;

pub(crate) use files::write;
pub(crate) use machine::Machine;
pub(crate) use results::Losses;
pub(crate) use session::run;
pub(crate) use tables::print;
