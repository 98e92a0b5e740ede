//! Interception under a runtime's API table: a scripted runtime in this process, which can be old, odd or out of something.

#[cfg(test)]
mod application;
#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod churn;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod entries;
#[cfg(test)]
mod environment;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fork;
#[cfg(test)]
mod fronts;
#[cfg(test)]
mod install;
#[cfg(test)]
mod others;
#[cfg(test)]
mod packets;
#[cfg(test)]
mod producers;
#[cfg(test)]
mod runtime;
#[cfg(test)]
#[path = "../shared/service.rs"]
mod service;
#[cfg(test)]
mod settle;
#[cfg(test)]
mod states;
