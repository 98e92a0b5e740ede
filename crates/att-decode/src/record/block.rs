//! Small records that come in blocks.

/// Streamed performance counters of one compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct PerfEvent {
    /// Shader clock.
    pub time: i64,
    /// Four counters of the bank.
    pub events: [u16; 4],
    /// Compute unit.
    pub cu: u8,
    /// Counter bank, 0 to 3.
    pub bank: u8,
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct RealtimeSample {
    /// Shader clock.
    pub shader_clock: i64,
    /// Real-time clock, in ticks of the frequency that an RT_FREQUENCY record gives.
    pub realtime_clock: u64,
    /// Always 0.
    pub reserved: u64,
}

/// A word written by a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ShaderData {
    /// Shader clock.
    pub time: i64,
    /// The word.
    pub value: u64,
    /// Compute unit, or shader array and WGP on RDNA.
    pub cu: u8,
    /// SIMD.
    pub simd: u8,
    /// Wave slot.
    pub wave_id: u8,
    /// [`ShaderData::IMMEDIATE`] and [`ShaderData::PRIVILEGED`].
    pub flags: u8,
    /// Always 0.
    pub reserved: u32,
}

impl ShaderData {
    /// Flag: the value is an immediate of the instruction.
    pub const IMMEDIATE: u8 = 1;
    /// Flag: written by privileged code.
    pub const PRIVILEGED: u8 = 2;
}

/// An instruction of a SIMD that is not traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct OtherSimd {
    /// Size of this structure in bytes.
    pub size: u64,
    /// Shader clock.
    pub time: i64,
    /// Issue cycles.
    pub cycles: u16,
    /// Shader array and WGP of the target.
    pub wgp: u8,
    /// A [`Category`](super::Category).
    pub category: u8,
}

const _: () = assert!(size_of::<PerfEvent>() == 24);
const _: () = assert!(size_of::<RealtimeSample>() == 24);
const _: () = assert!(size_of::<ShaderData>() == 24);
const _: () = assert!(size_of::<OtherSimd>() == 24);
