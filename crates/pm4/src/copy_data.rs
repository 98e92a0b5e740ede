//! COPY_DATA: one or two dwords from a register, memory, an immediate or a clock to a register or memory.

use std::fmt;

/// Where the data come from (control bits 3:0), unknown values kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopySource(pub u8);

impl CopySource {
    /// A memory-mapped register.
    pub const REGISTER: Self = Self(0);
    /// Memory.
    pub const MEMORY: Self = Self(1);
    /// Memory through the L2 cache.
    pub const L2: Self = Self(2);
    /// A performance-counter (privileged) register.
    pub const PERF_COUNTER: Self = Self(4);
    /// The source dwords themselves.
    pub const IMMEDIATE: Self = Self(5);
    /// The GPU clock count.
    pub const GPU_CLOCK: Self = Self(9);

    /// Whether the source dwords are a register address.
    pub const fn is_register(self) -> bool {
        matches!(self, Self::REGISTER | Self::PERF_COUNTER)
    }

    /// Whether the source dwords are a memory address.
    pub const fn is_memory(self) -> bool {
        matches!(self, Self::MEMORY | Self::L2)
    }
}

/// Where the data go (control bits 11:8), unknown values kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyDestination(pub u8);

impl CopyDestination {
    /// A memory-mapped register.
    pub const REGISTER: Self = Self(0);
    /// Memory through the L2 cache.
    pub const L2: Self = Self(2);
    /// A performance-counter (privileged) register.
    pub const PERF_COUNTER: Self = Self(4);
    /// Memory.
    pub const MEMORY: Self = Self(5);

    /// Whether the destination dwords are a register address.
    pub const fn is_register(self) -> bool {
        matches!(self, Self::REGISTER | Self::PERF_COUNTER)
    }

    /// Whether the destination dwords are a memory address.
    pub const fn is_memory(self) -> bool {
        matches!(self, Self::L2 | Self::MEMORY)
    }
}

/// Dword 1 of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyControl(pub u32);

impl CopyControl {
    const COUNT_64: u32 = 1 << 16;
    const CONFIRM: u32 = 1 << 20;

    /// A 32-bit move without confirmation and with cache policy 0.
    pub const fn new(source: CopySource, destination: CopyDestination) -> Self {
        Self(source.0 as u32 & 0xF | (destination.0 as u32 & 0xF) << 8)
    }

    /// Sets the cache policies of both sides (two bits each; on gfx12 the temporal hint).
    pub const fn with_policies(self, source: u8, destination: u8) -> Self {
        let cleared = self.0 & !(3 << 13 | 3 << 25);
        Self(cleared | (source as u32 & 3) << 13 | (destination as u32 & 3) << 25)
    }

    /// Makes it a 64-bit move.
    pub const fn with_64_bits(self) -> Self {
        Self(self.0 | Self::COUNT_64)
    }

    /// Makes the command processor wait until the write has arrived.
    pub const fn with_confirm(self) -> Self {
        Self(self.0 | Self::CONFIRM)
    }

    /// Replaces the source.
    pub const fn with_source(self, source: CopySource) -> Self {
        Self(self.0 & !0xF | source.0 as u32 & 0xF)
    }

    /// Replaces the destination.
    pub const fn with_destination(self, destination: CopyDestination) -> Self {
        Self(self.0 & !0xF00 | (destination.0 as u32 & 0xF) << 8)
    }

    /// Where the data come from.
    pub const fn source(self) -> CopySource {
        CopySource((self.0 & 0xF) as u8)
    }

    /// Where the data go.
    pub const fn destination(self) -> CopyDestination {
        CopyDestination((self.0 >> 8 & 0xF) as u8)
    }

    /// Cache policy of the source.
    pub const fn source_policy(self) -> u8 {
        (self.0 >> 13 & 3) as u8
    }

    /// Cache policy of the destination.
    pub const fn destination_policy(self) -> u8 {
        (self.0 >> 25 & 3) as u8
    }

    /// Bytes moved: 4 or 8.
    pub const fn bytes(self) -> u32 {
        if self.0 & Self::COUNT_64 != 0 { 8 } else { 4 }
    }

    /// Whether the command processor waits for the write.
    pub const fn confirm(self) -> bool {
        self.0 & Self::CONFIRM != 0
    }
}

impl fmt::Debug for CopyControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CopyControl({:#010x})", self.0)
    }
}

/// A COPY_DATA packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyData {
    /// Selectors, width, policies.
    pub control: CopyControl,
    /// Dwords 2 and 3: register (on gfx9 possibly of another die, above bit 31), address or immediate.
    pub source: u64,
    /// Dwords 4 and 5: register or address.
    pub destination: u64,
}

impl fmt::Debug for CopyData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COPY_DATA({:#010x}: {:#x} -> {:#x})", self.control.0, self.source, self.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Control words observed in captured command buffers.
    #[test]
    fn control_words_have_their_recorded_values() {
        let read = CopyControl::new(CopySource::REGISTER, CopyDestination::MEMORY).with_policies(1, 1);
        assert_eq!(read.0, 0x0200_2500);
        let clock = read.with_source(CopySource::GPU_CLOCK).with_64_bits().with_confirm();
        assert_eq!(clock.0, 0x0211_2509);
        let write =
            CopyControl::new(CopySource::IMMEDIATE, CopyDestination::PERF_COUNTER).with_policies(3, 3);
        assert_eq!(write.0, 0x0600_6405);
        assert_eq!((clock.bytes(), clock.confirm(), clock.source_policy()), (8, true, 1));
    }
}
