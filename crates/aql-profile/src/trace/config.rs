//! A trace configuration: the parameters, and what they amount to.

use crate::agent::Chip;
use crate::error::Error;
use crate::trace::parameter::TraceParameter;

/// What is to be traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceConfig {
    /// Parameters, applied in order.
    pub parameters: Vec<TraceParameter>,
    /// Data buffers that are written in turn; 0 and 1 both mean one. More need gfx9 or gfx12 and exactly one
    /// engine in the mask. Library 7.2.4 has no such parameter, so several buffers exist in the built-in
    /// implementation only, after the library's later sources; no golden exists for them.
    pub buffers: u32,
}

impl From<Vec<TraceParameter>> for TraceConfig {
    fn from(parameters: Vec<TraceParameter>) -> Self {
        Self { parameters, buffers: 1 }
    }
}

/// Sequencer counters that a trace can carry.
pub(super) const TRACE_COUNTERS: usize = 8;
/// The last unit that the target field's users can name.
const LAST_TARGET: u32 = 15;
/// PERFCOUNTER_CTRL's bits besides the rate: all VMIDs, all stages.
const COUNTER_CONTROL: u32 = 0xFFFF_007F;
/// RT_TIMESTAMP's value that switches timestamps off; every other value leaves them on.
const RT_TIMESTAMP_OFF: u32 = 2;

/// The parameters' outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) target: u32,
    pub(super) se_mask: u64,
    pub(super) simd: u32,
    pub(super) occupancy: bool,
    pub(super) buffer_bytes: u64,
    pub(super) rt_timestamp: bool,
    pub(super) counter_mask: u32,
    pub(super) counter_control: u32,
    pub(super) counter_period: u64,
    /// (event id, SIMD mask).
    pub(super) counters: Vec<(u32, u32)>,
    pub(super) buffers: u32,
}

impl Settings {
    /// Applies the parameters of `config` to upstream's defaults.
    pub(super) fn new(chip: &Chip, config: &TraceConfig) -> Result<Self, Error> {
        let mut settings = Self {
            target: 0,
            se_mask: 0x11,
            simd: 0xF,
            occupancy: false,
            buffer_bytes: 3 << 26,
            rt_timestamp: true,
            counter_mask: u32::MAX,
            counter_control: 0,
            counter_period: 0,
            counters: Vec::new(),
            buffers: config.buffers.max(1),
        };
        for &parameter in &config.parameters {
            settings.apply(chip, parameter)?;
        }
        Ok(settings)
    }

    fn apply(&mut self, chip: &Chip, parameter: TraceParameter) -> Result<(), Error> {
        let TraceParameter { code, value } = parameter;
        match code {
            TraceParameter::TARGET if value > LAST_TARGET => {
                return Err(Error::TargetOutOfRange { target: value });
            }
            TraceParameter::TARGET => self.target = value,
            TraceParameter::SE_MASK => {
                let engines = 1u64.checked_shl(chip.se).map_or(u64::MAX, |bit| bit - 1);
                self.se_mask = u64::from(value) & engines;
            }
            TraceParameter::SIMD_SELECTION => self.simd = value & 0xF,
            TraceParameter::OCCUPANCY_MODE => self.occupancy = value != 0,
            TraceParameter::BUFFER_SIZE => {
                self.buffer_bytes = self.buffer_bytes >> 32 << 32 | u64::from(value);
            }
            TraceParameter::BUFFER_SIZE_HIGH => {
                self.buffer_bytes = self.buffer_bytes & 0xFFFF_FFFF | u64::from(value) << 32;
            }
            TraceParameter::RT_TIMESTAMP => self.rt_timestamp = value != RT_TIMESTAMP_OFF,
            TraceParameter::PERFCOUNTER_MASK => self.counter_mask = value,
            TraceParameter::PERFCOUNTER_CTRL => {
                self.counter_control = (value & 0x1F) << 8 | COUNTER_CONTROL;
                self.counter_period = u64::from(value.wrapping_add(1));
            }
            TraceParameter::PERFCOUNTER_NAME => {
                if self.counters.len() >= TRACE_COUNTERS {
                    return Err(Error::TooManyTraceCounters { limit: TRACE_COUNTERS });
                }
                self.counters.push((value & 0xFFF_FFFF, value >> 28));
            }
            _ => return Err(Error::UnknownParameter { code }),
        }
        Ok(())
    }
}
