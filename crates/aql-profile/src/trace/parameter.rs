//! Trace parameters as the aqlprofile API takes them: a code and a value.

/// One parameter (`aqlprofile_att_parameter_t`). They are applied in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceParameter {
    /// Which parameter (`hsa_ven_amd_aqlprofile_parameter_name_t` and its v2 additions).
    pub code: u32,
    /// Its value.
    pub value: u32,
}

impl TraceParameter {
    pub(super) const TARGET: u32 = 0;
    pub(super) const SE_MASK: u32 = 5;
    pub(super) const SIMD_SELECTION: u32 = 8;
    pub(super) const OCCUPANCY_MODE: u32 = 9;
    pub(super) const BUFFER_SIZE: u32 = 10;
    pub(super) const BUFFER_SIZE_HIGH: u32 = 11;
    pub(super) const RT_TIMESTAMP: u32 = 12;
    pub(super) const PERFCOUNTER_MASK: u32 = 240;
    pub(super) const PERFCOUNTER_CTRL: u32 = 241;
    pub(super) const PERFCOUNTER_NAME: u32 = 242;

    const fn new(code: u32, value: u32) -> Self {
        Self { code, value }
    }

    /// The compute unit (gfx9) or work-group processor whose instructions are traced, 0 to 15.
    pub const fn target(unit: u32) -> Self {
        Self::new(Self::TARGET, unit)
    }

    /// The shader engines that are traced. Without it upstream takes 0x11, which halves the buffer on chips with
    /// fewer than five engines: always give one.
    pub const fn se_mask(mask: u32) -> Self {
        Self::new(Self::SE_MASK, mask)
    }

    /// The SIMDs of the target: a bit mask on gfx9, a number (two bits) later.
    pub const fn simd_selection(selection: u32) -> Self {
        Self::new(Self::SIMD_SELECTION, selection)
    }

    /// Whether only occupancy is traced.
    pub const fn occupancy_mode(on: bool) -> Self {
        Self::new(Self::OCCUPANCY_MODE, on as u32)
    }

    /// The buffer for all engines together, in bytes: one parameter, or two from 4 GiB on.
    pub fn buffer_size(bytes: u64) -> Vec<Self> {
        let mut parameters = vec![Self::new(Self::BUFFER_SIZE, bytes as u32)];
        let high = (bytes >> 32) as u32;
        if high != 0 {
            parameters.push(Self::new(Self::BUFFER_SIZE_HIGH, high));
        }
        parameters
    }

    /// Whether timestamps are put into the trace (they are unless switched off).
    pub const fn rt_timestamp(on: bool) -> Self {
        Self::new(Self::RT_TIMESTAMP, if on { 1 } else { 2 })
    }

    /// The compute units whose counters go into the trace (gfx9).
    pub const fn perfcounter_mask(mask: u32) -> Self {
        Self::new(Self::PERFCOUNTER_MASK, mask)
    }

    /// How often counters go into the trace: bits 4:0 are the rate exponent (gfx9).
    pub const fn perfcounter_ctrl(control: u32) -> Self {
        Self::new(Self::PERFCOUNTER_CTRL, control)
    }

    /// Adds a sequencer counter to the trace: event id and SIMD mask (gfx9, at most eight).
    pub const fn perfcounter(event: u32, simd_mask: u8) -> Self {
        Self::new(Self::PERFCOUNTER_NAME, event & 0xFFF_FFFF | (simd_mask as u32) << 28)
    }
}
