//! HSA API-table hooks, packet rewriting and completion
mod packets;
mod serializer;
