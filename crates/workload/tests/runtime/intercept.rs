//! Intercept queues: what the handler sees, what the writer does.
