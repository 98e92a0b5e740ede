//! The compute registers that the decoder watches.
//!
//! Numbers are those of the tokens: offsets from the first compute register, `COMPUTE_DISPATCH_INITIATOR`
//! (Linux kernel, `drivers/gpu/drm/amd/include/asic_reg/gc/gc_11_0_0_offset.h` and its siblings).

/// Compute registers with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ComputeRegister(pub(crate) u16);

impl ComputeRegister {
    pub(crate) const DISPATCH_INITIATOR: Self = Self(0x00);
    pub(crate) const NUM_THREAD_X: Self = Self(0x07);
    pub(crate) const NUM_THREAD_Y: Self = Self(0x08);
    pub(crate) const NUM_THREAD_Z: Self = Self(0x09);
    pub(crate) const PGM_LO: Self = Self(0x0c);
    pub(crate) const PGM_HI: Self = Self(0x0d);
    pub(crate) const DISPATCH_PKT_ADDR_LO: Self = Self(0x0e);
    pub(crate) const DISPATCH_PKT_ADDR_HI: Self = Self(0x0f);
    pub(crate) const PGM_RSRC1: Self = Self(0x12);
    pub(crate) const PGM_RSRC2: Self = Self(0x13);
    pub(crate) const PGM_RSRC3: Self = Self(0x2d);
    /// The highest number that RDNA streams are watched for.
    pub(crate) const LAST: u16 = Self::PGM_RSRC3.0;
    /// Not a register: gfx9 streams write 7 here for a partial flush.
    pub(crate) const GFX9_EVENT: Self = Self(0x7f);
}

/// Micro-engine and pipe (0 to 3) of a queue. State is kept for two micro-engines: the lowest bit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) me: u8,
    pub(crate) pipe: u8,
}

impl Queue {
    /// How many different queues there are.
    pub(crate) const COUNT: usize = 8;

    #[inline(always)]
    pub(crate) const fn new(me: u8, pipe: u8) -> Self {
        Queue { me, pipe: pipe & 3 }
    }

    /// Position in per-queue arrays.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        ((self.me & 1) << 2 | self.pipe & 3) as usize
    }
}

/// Values of the watched registers: per queue where several queues launch from them, else one copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) pgm: [u64; Queue::COUNT],
    pub(crate) packet: [u64; Queue::COUNT],
    pub(crate) threads: [u32; 3],
    pub(crate) rsrc1: u32,
    pub(crate) rsrc2: u32,
    pub(crate) rsrc3: u32,
}

impl Registers {
    /// Takes a register write; registers without an effect are ignored.
    #[inline]
    pub(crate) fn write(&mut self, register: ComputeRegister, data: u32, queue: Queue) {
        match register {
            ComputeRegister::NUM_THREAD_X => self.threads[0] = data,
            ComputeRegister::NUM_THREAD_Y => self.threads[1] = data,
            ComputeRegister::NUM_THREAD_Z => self.threads[2] = data,
            ComputeRegister::PGM_LO => set_low(&mut self.pgm[queue.index()], data),
            ComputeRegister::PGM_HI => set_high(&mut self.pgm[queue.index()], data),
            ComputeRegister::DISPATCH_PKT_ADDR_LO => set_low(&mut self.packet[queue.index()], data),
            ComputeRegister::DISPATCH_PKT_ADDR_HI => set_high(&mut self.packet[queue.index()], data),
            ComputeRegister::PGM_RSRC1 => self.rsrc1 = data,
            ComputeRegister::PGM_RSRC2 => self.rsrc2 = data,
            ComputeRegister::PGM_RSRC3 => self.rsrc3 = data,
            _ => {}
        }
    }

    /// Address of the first instruction of a wave of this queue: the register counts in 256 bytes.
    #[inline]
    pub(crate) fn entry_address(&self, queue: Queue) -> u64 {
        (self.pgm[queue.index()] << 8) & ((1 << 48) - 1)
    }
}

/// Replaces the low half of a register pair.
pub(crate) fn set_low(pair: &mut u64, data: u32) {
    *pair = *pair & !0xffff_ffff | u64::from(data);
}

/// Replaces the high half of a register pair.
pub(crate) fn set_high(pair: &mut u64, data: u32) {
    *pair = *pair & 0xffff_ffff | u64::from(data) << 32;
}
