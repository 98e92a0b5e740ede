//! Hardware counters for every kernel dispatch
