//! What the tests share: where the captures are, and classes by a second, coarser reading of the mnemonics.
#![allow(dead_code, clippy::allow_attributes, reason = "each test binary uses a part")]

use std::path::PathBuf;

use wavescope_isa::InstructionClass;

/// `../shared/fixtures/sqtt` beside the repository; None, said aloud, where it is absent.
pub(crate) fn captures() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/sqtt");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("NOT RUN: ../shared/fixtures/sqtt is absent");
    None
}

/// Mnemonic of a line of disassembly without the suffixes that say the encoding.
pub(crate) fn bare(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or("");
    let suffixes = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
    suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Waits, barriers and messages: what the issue logic handles by itself.
const IMMEDIATE: &[&str] = &[
    "s_waitcnt",
    "s_nop",
    "s_endpgm",
    "s_sendmsg",
    "s_barrier",
    "s_clause",
    "s_sleep",
    "s_trap",
    "s_sethalt",
    "s_setkill",
    "s_icache",
    "s_ttrace",
    "s_incperf",
    "s_decperf",
    "s_wakeup",
    "s_version",
    "s_monitor",
    "s_inst_prefetch",
    "s_set_inst_prefetch",
    "s_setvskip",
];

/// The `s_wait_*` of gfx11 and later that wait for a counter.
const COUNTERS: &[&str] = &[
    "idle",
    "event",
    "loadcnt",
    "storecnt",
    "samplecnt",
    "bvhcnt",
    "expcnt",
    "dscnt",
    "kmcnt",
    "xcnt",
    "asynccnt",
    "tensorcnt",
];

/// Class that a line of LLVM's disassembly should have, by mnemonic families.
pub(crate) fn class_of(gfxip: u8, text: &str) -> InstructionClass {
    use InstructionClass as Class;
    let name = bare(text);
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let family = name.split('_').next().unwrap_or("");
    match family {
        "v" if gfxip == 9 && starts(&["v_mfma_scale_"]) => Class::MfmaScale,
        "v" if gfxip == 12 && name == "v_mov_b64" => Class::Mov64,
        "v" => Class::Valu,
        "ds" if gfxip == 12 && starts(&["ds_bvh"]) => Class::Bvh,
        "ds" | "lds" => Class::Lds,
        "flat" => Class::Flat,
        "image" if name.contains("bvh") => Class::Bvh,
        "global" | "buffer" | "tbuffer" | "image" | "scratch" | "tensor" | "cluster" => Class::Vmem,
        "s" => scalar_class_of(gfxip, name),
        _ => Class::Unknown,
    }
}

fn scalar_class_of(gfxip: u8, name: &str) -> InstructionClass {
    use InstructionClass as Class;
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let counter =
        name.strip_prefix("s_wait_").is_some_and(|rest| COUNTERS.iter().any(|one| rest.starts_with(one)));
    if starts(&["s_branch", "s_cbranch"]) {
        Class::Branch
    } else if gfxip == 9 && name == "s_barrier" {
        Class::Barrier9
    } else if counter || name == "s_setprio" || starts(IMMEDIATE) {
        Class::Immediate
    } else if starts(&["s_delay_alu", "s_wait_alu", "s_set_vgpr"]) {
        Class::Skip
    } else if starts(&[
        "s_load",
        "s_store",
        "s_buffer",
        "s_scratch",
        "s_atomic",
        "s_dcache",
        "s_prefetch",
        "s_atc",
    ]) || name == "s_memrealtime"
    {
        Class::Smem
    } else {
        Class::Salu
    }
}
