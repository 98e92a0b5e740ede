//! Every layer together, on both faces of the software GPU.

#![cfg(test)]

mod agents;
mod aqlprofile;
mod counting;
mod faults;
mod many_contexts;
mod run;
mod tracing;
