//! HSA API-table hooks, packet rewriting and completion
