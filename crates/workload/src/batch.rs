//! What is submitted together: dispatches and barriers, in order, under one doorbell.

use hsa_sys::hsa_signal_t;
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};

use crate::{Arguments, Kernel, Signal};

/// One kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    kernel: Kernel,
    grid: [u32; 3],
    workgroup: [u16; 3],
    arguments: Arguments,
    dynamic_group_bytes: u32,
    barrier: bool,
}

impl Launch {
    /// Launches `kernel` over `grid` work-items in groups of `workgroup`, without arguments.
    pub fn new(kernel: Kernel, grid: [u32; 3], workgroup: [u16; 3]) -> Self {
        Self {
            kernel,
            grid,
            workgroup,
            arguments: Arguments::default(),
            dynamic_group_bytes: 0,
            barrier: false,
        }
    }

    /// Passes arguments.
    #[must_use]
    pub fn arguments(self, arguments: Arguments) -> Self {
        Self { arguments, ..self }
    }

    /// Adds LDS per work-group beyond what the kernel's code uses itself, in bytes.
    #[must_use]
    pub fn dynamic_group_bytes(self, dynamic_group_bytes: u32) -> Self {
        Self { dynamic_group_bytes, ..self }
    }

    /// Sets the BARRIER bit: the kernel begins after everything before it on its queue has completed.
    #[must_use]
    pub fn after_all_before(self) -> Self {
        Self { barrier: true, ..self }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.kernel.name
    }

    /// Address of the kernel's descriptor, as the packet names it.
    pub fn kernel_object(&self) -> u64 {
        self.kernel.object
    }

    /// Work-items per dimension.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Work-items per work-group and dimension.
    pub fn workgroup(&self) -> [u16; 3] {
        self.workgroup
    }

    fn dimensions(&self) -> u32 {
        match self.grid {
            [_, 1, 1] => 1,
            [_, _, 1] => 2,
            _ => 3,
        }
    }

    /// The packet (`hsa_kernel_dispatch_packet_t`), with its arguments at `kernarg`.
    fn packet(&self, kernarg: u64, completion: hsa_signal_t) -> AqlPacket {
        let header =
            PacketHeader::new(PacketType::KERNEL_DISPATCH, self.barrier, Fence::System, Fence::System);
        let [x, y, z] = self.workgroup.map(u32::from);
        let object = self.kernel.object;
        let group_bytes = self.kernel.group_bytes + self.dynamic_group_bytes;
        let mut packet = AqlPacket([0; 16]);
        packet.0[0] = self.dimensions() << 16;
        packet.0[1] = x | y << 16;
        packet.0[2] = z;
        packet.0[3..6].copy_from_slice(&self.grid);
        packet.0[6] = self.kernel.private_bytes;
        packet.0[7] = group_bytes;
        packet.0[8..10].copy_from_slice(&[object as u32, (object >> 32) as u32]);
        packet.0[10..12].copy_from_slice(&[kernarg as u32, (kernarg >> 32) as u32]);
        packet.set_completion_signal(completion.handle);
        packet.set_header(header);
        packet
    }
}

/// What a barrier packet waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// All signals zero (barrier-AND).
    All,
    /// Any signal zero (barrier-OR).
    Any,
}

#[derive(Clone, Debug)]
enum Item {
    Launch(Launch),
    Packet(AqlPacket),
}

/// Packets in order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    items: Vec<Item>,
    own_signals: bool,
}

impl Batch {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives each dispatch a completion signal of its own, so that its times can be asked for. Without it all
    /// dispatches of the batch count down one signal.
    #[must_use]
    pub fn own_signals(self) -> Self {
        Self { own_signals: true, ..self }
    }

    /// Adds a dispatch.
    pub fn launch(&mut self, launch: Launch) -> &mut Self {
        self.items.push(Item::Launch(launch));
        self
    }

    /// Adds a barrier packet that waits for up to five signals, each to be zero, and then decrements `completion`.
    /// Signals beyond the fifth are left out: the packet has no place for them.
    pub fn barrier(
        &mut self,
        wait: Dependency,
        signals: &[&Signal],
        completion: Option<&Signal>,
    ) -> &mut Self {
        let kind = match wait {
            Dependency::All => PacketType::BARRIER_AND,
            Dependency::Any => PacketType::BARRIER_OR,
        };
        let mut packet = AqlPacket([0; 16]);
        for (signal, place) in signals.iter().zip(packet.0[2..12].chunks_exact_mut(2)) {
            let handle = signal.handle().handle;
            place.copy_from_slice(&[handle as u32, (handle >> 32) as u32]);
        }
        packet.set_completion_signal(completion.map_or(0, |signal| signal.handle().handle));
        packet.set_header(PacketHeader::new(kind, true, Fence::System, Fence::System));
        self.packet(packet)
    }

    /// Adds any packet as it is. Signals and memory that it names are the caller's.
    pub fn packet(&mut self, packet: AqlPacket) -> &mut Self {
        self.items.push(Item::Packet(packet));
        self
    }

    /// How many packets it has.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its dispatches in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.items.iter().filter_map(|item| match item {
            Item::Launch(launch) => Some(launch),
            Item::Packet(_) => None,
        })
    }

    pub(crate) fn has_own_signals(&self) -> bool {
        self.own_signals
    }

    /// Size of the largest argument segment, in bytes.
    pub(crate) fn argument_stride(&self) -> usize {
        let largest = self
            .launches()
            .map(|launch| launch.arguments.bytes().len().max(launch.kernel.kernarg_bytes as usize));
        // 64 bytes: argument segments of different dispatches share no cache line.
        largest.max().unwrap_or(0).next_multiple_of(64)
    }

    /// Argument bytes of the dispatches in order.
    pub(crate) fn argument_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.launches().map(|launch| launch.arguments.bytes())
    }

    /// The packets. `of_launch` gives address of arguments and completion signal of the n-th dispatch.
    pub(crate) fn packets(&self, of_launch: impl Fn(usize) -> (u64, hsa_signal_t)) -> Vec<AqlPacket> {
        let mut launches = 0;
        let packet = |item: &Item| match item {
            Item::Packet(packet) => *packet,
            Item::Launch(launch) => {
                let (kernarg, completion) = of_launch(launches);
                launches += 1;
                launch.packet(kernarg, completion)
            }
        };
        self.items.iter().map(packet).collect()
    }
}
