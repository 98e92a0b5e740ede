//! What wait instructions wait for.
//!
//! Fields of the 16-bit constants: LLVM `AMDGPUBaseInfo.cpp` (`getVmcntBitShiftLo` and its neighbours), AMD's RDNA 4
//! instruction-set document for the separate counters of gfx12.

use wavescope_isa::Generation;

use super::super::work::Wait;

/// What the instruction waits for.
pub(super) fn of(generation: Generation, name: &str, bytes: &[u8]) -> Wait {
    let constant = u16::from_le_bytes([bytes[0], bytes[1]]);
    let f = |from: u32, bits: u32| (constant >> from & ((1 << bits) - 1)) as u8;
    let none = Wait::NONE;
    match name {
        "s_waitcnt" => match generation {
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
                counted(f(0, 4) | f(14, 2) << 4, 63, f(8, 4), 15)
            }
            Generation::Gfx10 | Generation::Gfx10_3 => counted(f(0, 4) | f(14, 2) << 4, 63, f(8, 6), 63),
            _ => counted(f(10, 6), 63, f(4, 6), 63),
        },
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" | "s_wait_samplecnt" | "s_wait_bvhcnt" => {
            Wait { loads: f(0, 6), ..none }
        }
        "s_waitcnt_vscnt" | "s_wait_storecnt" => Wait { stores: f(0, 6), ..none },
        "s_waitcnt_lgkmcnt" | "s_wait_dscnt" => Wait { lds: f(0, 6), ..none },
        "s_wait_kmcnt" => Wait { scalar: f(0, 5), ..none },
        "s_wait_loadcnt_dscnt" => Wait { loads: f(8, 6), lds: f(0, 6), ..none },
        "s_wait_storecnt_dscnt" => Wait { stores: f(8, 6), lds: f(0, 6), ..none },
        "s_wait_idle" => Wait { loads: 0, stores: 0, lds: 0, scalar: 0 },
        _ => none,
    }
}

/// The two counters of `s_waitcnt`; a field of all ones waits for nothing.
const fn counted(loads: u8, loads_any: u8, lds: u8, lds_any: u8) -> Wait {
    let loads = if loads == loads_any { Wait::ANY } else { loads };
    let lds = if lds == lds_any { Wait::ANY } else { lds };
    Wait { loads, lds, ..Wait::NONE }
}
