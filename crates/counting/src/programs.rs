//! Instances of a configuration's program as dispatches use them.

use std::sync::Arc;

use wavescope_core::sync::Mutex;
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};

use crate::config::CounterConfig;
use crate::pool::{Packets, SharedInstance};

/// A program's packet with its header: vendor-specific, system scope on both sides, since the host reads what the
/// commands write.
pub(crate) fn vendor_packet(packet: AqlPacket, barrier: bool) -> AqlPacket {
    let mut packet = packet;
    packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, barrier, Fence::System, Fence::System));
    packet
}

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
        start: vendor_packet(instance.start(), false),
        read: vendor_packet(instance.read(), true),
        stop: vendor_packet(instance.stop(), true),
    };
    Some((packets, Arc::new(Mutex::new(instance))))
}
