//! AMD thread-trace (SQTT) bytes to waves, instructions and occupancy, offline
