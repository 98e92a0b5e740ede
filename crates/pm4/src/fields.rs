//! Fields of the named registers, for the printer (kernel `gc_*_sh_mask.h`).

use crate::registers::RegisterName;
use crate::target::Generation;

/// A bit field of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the kernel headers.
    pub name: &'static str,
    /// Lowest bit.
    pub low: u8,
    /// Highest bit.
    pub high: u8,
}

impl Field {
    /// The field's value in a register value.
    pub const fn of(self, value: u32) -> u32 {
        let width = self.high - self.low + 1;
        let mask = if width >= 32 { u32::MAX } else { (1 << width) - 1 };
        value >> self.low & mask
    }
}

const fn bits(name: &'static str, high: u8, low: u8) -> Field {
    Field { name, low, high }
}

const fn bit(name: &'static str, bit: u8) -> Field {
    Field { name, low: bit, high: bit }
}

/// The fields of a named register; empty where the register is one number.
pub const fn register_fields(generation: Generation, name: RegisterName) -> &'static [Field] {
    use Generation::{Gfx9, Gfx10, Gfx11, Gfx12};
    use RegisterName as R;
    match (name, generation) {
        (R::GrbmGfxIndex, Gfx12) => GFX_INDEX_12,
        (R::GrbmGfxIndex, _) => GFX_INDEX,
        (R::CpPerfmonCntl, _) => CP_PERFMON_CNTL,
        (R::ComputePerfcountEnable, _) => const { &[bit("PERFCOUNT_ENABLE", 0)] },
        (R::ComputeThreadTraceEnable, _) => const { &[bit("THREAD_TRACE_ENABLE", 0)] },
        (R::RlcPerfmonClkCntl, _) => const { &[bit("PERFMON_CLOCK_STATE", 0)] },
        (R::SqPerfcounterCtrl | R::SqgPerfcounterCtrl, Gfx9) => SQ_CTRL_9,
        (R::SqPerfcounterCtrl | R::SqgPerfcounterCtrl, _) => SQ_CTRL,
        (R::SqPerfcounterCtrl2, _) => const { &[bit("FORCE_EN", 0), bits("VMID_EN", 16, 1)] },
        (R::SqPerfcounterMask, _) => const { &[bits("SH0_MASK", 15, 0), bits("SH1_MASK", 31, 16)] },
        (R::SqThreadTraceMask, Gfx9) => TRACE_MASK_9,
        (R::SqThreadTraceMask, Gfx10 | Gfx11 | Gfx12) => TRACE_MASK,
        (R::SqThreadTraceTokenMask, Gfx9) => TOKEN_MASK_9,
        (R::SqThreadTraceTokenMask, Gfx12) => TOKEN_MASK_12,
        (R::SqThreadTraceTokenMask, Gfx10 | Gfx11) => TOKEN_MASK,
        (R::SqThreadTraceMode, _) => TRACE_MODE_9,
        (R::SqThreadTraceCtrl, Gfx9) => const { &[bit("RESET_BUFFER", 31)] },
        (R::SqThreadTraceCtrl, Gfx10) => TRACE_CTRL_10,
        (R::SqThreadTraceCtrl, Gfx11) => TRACE_CTRL_11,
        (R::SqThreadTraceCtrl, Gfx12) => TRACE_CTRL_12,
        (R::SqThreadTraceBuf0Size | R::SqThreadTraceBuf1Size, Gfx10 | Gfx11) => BUFFER_SIZE,
        (R::SqThreadTraceBase2, _) => const { &[bits("ADDR_HI", 3, 0)] },
        (R::SqThreadTraceSize, _) => const { &[bits("SIZE", 21, 0)] },
        _ => &[],
    }
}

const GFX_INDEX: &[Field] = &[
    bits("INSTANCE_INDEX", 7, 0),
    bits("SA_INDEX", 15, 8),
    bits("SE_INDEX", 23, 16),
    bit("SA_BROADCAST_WRITES", 29),
    bit("INSTANCE_BROADCAST_WRITES", 30),
    bit("SE_BROADCAST_WRITES", 31),
];
const GFX_INDEX_12: &[Field] = &[
    bits("INSTANCE_INDEX", 6, 0),
    bits("SA_INDEX", 9, 8),
    bits("SE_INDEX", 19, 16),
    bit("SA_BROADCAST_WRITES", 29),
    bit("INSTANCE_BROADCAST_WRITES", 30),
    bit("SE_BROADCAST_WRITES", 31),
];
const CP_PERFMON_CNTL: &[Field] = &[
    bits("PERFMON_STATE", 3, 0),
    bits("SPM_PERFMON_STATE", 7, 4),
    bits("PERFMON_ENABLE_MODE", 9, 8),
    bit("PERFMON_SAMPLE_ENABLE", 10),
];
const SQ_CTRL_9: &[Field] = &[
    bit("PS_EN", 0),
    bit("VS_EN", 1),
    bit("GS_EN", 2),
    bit("ES_EN", 3),
    bit("HS_EN", 4),
    bit("LS_EN", 5),
    bit("CS_EN", 6),
    bits("CNTR_RATE", 12, 8),
    bits("VMID_MASK", 31, 16),
];
const SQ_CTRL: &[Field] = &[
    bit("PS_EN", 0),
    bit("VS_EN", 1),
    bit("GS_EN", 2),
    bit("ES_EN", 3),
    bit("HS_EN", 4),
    bit("LS_EN", 5),
    bit("CS_EN", 6),
];
const TRACE_MASK_9: &[Field] = &[
    bits("CU_SEL", 4, 0),
    bit("SH_SEL", 5),
    bit("REG_STALL_EN", 7),
    bits("SIMD_EN", 11, 8),
    bits("VM_ID_MASK", 13, 12),
    bit("SPI_STALL_EN", 14),
    bit("SQ_STALL_EN", 15),
];
const TRACE_MASK: &[Field] = &[
    bits("SIMD_SEL", 1, 0),
    bits("WGP_SEL", 7, 4),
    bit("SA_SEL", 9),
    bits("WTYPE_INCLUDE", 16, 10),
    bit("EXCLUDE_NONDETAIL_SHADERDATA", 17),
];
const TOKEN_MASK_9: &[Field] =
    &[bits("TOKEN_MASK", 15, 0), bits("REG_MASK", 23, 16), bit("REG_DROP_ON_STALL", 24)];
const TOKEN_MASK: &[Field] = &[
    bits("TOKEN_EXCLUDE", 10, 0),
    bits("REG_INCLUDE", 23, 16),
    bits("INST_EXCLUDE", 25, 24),
    bits("REG_EXCLUDE", 28, 26),
    bit("REG_DETAIL_ALL", 31),
];
const TOKEN_MASK_12: &[Field] = &[
    bits("TOKEN_EXCLUDE", 11, 0),
    bit("EXCLUDE_BARRIER_WAIT", 14),
    bits("REG_INCLUDE", 23, 16),
    bits("INST_EXCLUDE", 25, 24),
    bits("REG_EXCLUDE", 28, 26),
    bit("REG_DETAIL_ALL", 31),
];
const TRACE_MODE_9: &[Field] = &[
    bits("MASK_PS", 2, 0),
    bits("MASK_VS", 5, 3),
    bits("MASK_GS", 8, 6),
    bits("MASK_ES", 11, 9),
    bits("MASK_HS", 14, 12),
    bits("MASK_LS", 17, 15),
    bits("MASK_CS", 20, 18),
    bits("MODE", 22, 21),
    bits("CAPTURE_MODE", 24, 23),
    bit("AUTOFLUSH_EN", 25),
    bit("WRAP", 31),
];
const TRACE_CTRL_10: &[Field] = &[
    bits("MODE", 1, 0),
    bit("DOUBLE_BUFFER", 5),
    bits("HIWATER", 8, 6),
    bit("REG_STALL_EN", 9),
    bit("SPI_STALL_EN", 10),
    bit("SQ_STALL_EN", 11),
    bit("REG_DROP_ON_STALL", 12),
    bit("UTIL_TIMER", 13),
    bits("RT_FREQ", 17, 16),
    bits("LOWATER_OFFSET", 22, 20),
    bit("AUTO_FLUSH_MODE", 29),
    bit("DRAW_EVENT_EN", 31),
];
const TRACE_CTRL_11: &[Field] = &[
    bits("MODE", 1, 0),
    bit("DOUBLE_BUFFER", 5),
    bits("HIWATER", 8, 6),
    bit("SPI_STALL_EN", 11),
    bit("SQ_STALL_EN", 12),
    bit("UTIL_TIMER", 13),
    bits("RT_FREQ", 17, 16),
    bits("LOWATER_OFFSET", 22, 20),
    bit("AUTO_FLUSH_MODE", 29),
    bit("DRAW_EVENT_EN", 31),
];
const TRACE_CTRL_12: &[Field] = &[
    bits("MODE", 1, 0),
    bit("DOUBLE_BUFFER", 5),
    bits("HIWATER", 8, 6),
    bit("SPI_STALL_EN", 11),
    bit("SQ_STALL_EN", 12),
    bit("UTIL_TIMER", 14),
    bits("LOWATER_OFFSET", 22, 20),
    bit("AUTO_FLUSH_MODE", 29),
    bit("DRAW_EVENT_EN", 31),
];
const BUFFER_SIZE: &[Field] = &[bits("BASE_HI", 3, 0), bits("SIZE", 29, 8)];
