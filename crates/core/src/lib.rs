//! Ids, agents, records, events and the actor kit that every Wavescope crate shares
