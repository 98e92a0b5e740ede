//! Packet programs: start, read and stop packets for counter sets and thread traces
