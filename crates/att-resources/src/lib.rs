//! The per-agent owner actor of thread-trace resources
