//! Instances of a configuration's program as dispatches use them.

use std::sync::Arc;

use wavescope_core::sync::Mutex;

use crate::config::CounterConfig;
use crate::pool::{Packets, SharedInstance};

/// Makes one more instance, which shares the start and stop commands of the `first`; `None`, with a log, if memory is
/// refused.
pub(crate) fn instance(
    config: &CounterConfig,
    first: Option<&SharedInstance>,
) -> Option<(Packets, SharedInstance)> {
    let made = match first {
        Some(first) => first.lock().sibling(),
        None => config.program().instance(config.memory()),
    };
    let instance = made
        .inspect_err(
            |error| tracing::warn!(%error, agent = %config.agent(), "no instance of a packet program"),
        )
        .ok()?;
    // Start needs no barrier: what runs before it is ordered by interception. Read and stop wait for the kernel.
    let packets = Packets {
        start: instance.start().into_vendor_specific(false),
        read: instance.read().into_vendor_specific(true),
        stop: instance.stop().into_vendor_specific(true),
    };
    Some((packets, Arc::new(Mutex::new(instance))))
}
