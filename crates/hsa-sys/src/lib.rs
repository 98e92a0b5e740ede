//! Raw bindings to HSA, its AMD extension, the API tables handed to tools, aqlprofile v2 and rocprofiler-register.
//!
//! Types keep their C names and layouts; function types stand in [`pfn`] under the functions' names. They are
//! generated from measured ABI facts (`abi/*.json`) by `cargo xtask codegen` and committed.
//!
//! This crate knows nothing of Wavescope and checks nothing: who owns a resource does.
//!
//! ```
//! use hsa_sys::{HSA_STATUS_ERROR_INVALID_AGENT, hsa_kernel_dispatch_packet_t, hsa_status_t};
//!
//! let mut packet = hsa_kernel_dispatch_packet_t::zeroed();
//! (packet.header, packet.setup) = (2, 1);
//! assert_eq!(packet.full_header(), 0x1_0002);
//! assert_eq!(hsa_status_t(0x1004), HSA_STATUS_ERROR_INVALID_AGENT);
//! ```

#[macro_use]
mod macros;
mod bits;
mod generated;
pub mod loader;
pub mod rocprofiler_register;
mod tables;

pub use generated::*;
pub use tables::has_slot;
