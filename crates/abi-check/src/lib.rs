//! Compares what our compiler laid out with measured C layouts: sizes, alignments, offsets, bit positions,
//! enumerators, table slots, argument sizes.
//!
//! The facts are JSON files that a C compiler's measurements went into (`crates/hsa-sys/abi/`). The other side is a
//! [`Registry`] of expressions over the types of [`hsa_sys`] (`size_of`, `offset_of!`, bits set and read back) that our
//! own compiler evaluates. [`compare`] demands that each fact has its counterpart and the other way round, so a type
//! that nobody bound, or that was bound wrongly, is a [`Difference`].
//!
//! The crate knows nothing of how the bindings were generated.
//!
//! ```
//! let facts = serde_json::json!({ "structs": { "hsa_agent_t": { "size": 4, "align": 8, "fields": [] } } });
//! let report = wavescope_abi_check::compare(&facts, &wavescope_abi_check::HSA);
//! assert!(report.differences.iter().any(|difference| difference.place == "structs.hsa_agent_t.size"));
//! ```

#[macro_use]
mod macros;
mod compare;
mod functions;
mod generated;
mod members;
mod registry;
mod report;

pub use compare::{compare, registry_for};
pub use registry::{
    Alias, BitSpan, Enumeration, Field, Function, Named, Place, Registry, Shape, Slot, Structure,
};
pub use report::{Difference, Report};

/// Compiled layouts for `hsa.json`: HSA core, AMD extension, loader extension, API tables.
pub const HSA: Registry = generated::hsa::REGISTRY;

/// Compiled layouts for `aqlprofile.json`: aqlprofile v2 and the first API.
pub const AQLPROFILE: Registry = generated::aqlprofile::REGISTRY;
