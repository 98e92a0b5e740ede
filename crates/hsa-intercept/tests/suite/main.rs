//! Interception on a scripted device: what is emitted, what retires, who runs.

#[cfg(test)]
mod common;
#[cfg(test)]
mod emission;
#[cfg(test)]
mod extended;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod retirement;
#[cfg(test)]
mod robustness;
#[cfg(test)]
mod serialization;
#[cfg(test)]
#[path = "../shared/service.rs"]
mod service;
#[cfg(test)]
mod times;
#[cfg(test)]
mod tracing;
