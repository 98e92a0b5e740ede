//! Shader markers: words that kernels write to say which function, scope or point they are at.
//!
//! A word is an id with two bits, and means something only with the map that the compiler put into the code object
//! ([`FunctionMap`]). Every wave has a *generation* from its start on: its map, its open scopes, the payload words that
//! are still to come. Ids mean different things in different code objects, so nothing is shared between waves.
//!
//! Format: `source/marker_stream.cpp` and `include/rocprof_trace_decoder/cxx/funcmap.hpp` below
//! `projects/rocprof-trace-decoder` of ROCm/rocm-systems.

mod generation;
mod map;
mod stream;

pub use map::{FunctionMap, MapEntry};
pub(crate) use stream::MarkerStream;
