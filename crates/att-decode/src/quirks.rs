//! Behaviour of the public decoder that looks accidental but shows in records, each behind a name.
//!
//! Setting one to the other value gives what was probably meant, and records that differ from the public decoder's.
//! Two more are the absence of something, so that there is nothing to switch: indices of unfinished gfx9 instructions
//! are not corrected when a replay takes one out (`Gfx9Wave::take_back`), and letters that lead nowhere in the tree of
//! mnemonics are passed over (`wavescope_isa::InstructionClass::of_text`).
//!
//! Source: `projects/rocprof-trace-decoder/source` of ROCm/rocm-systems, version 0.2.7; files are named below it.

use crate::generation::Generation;

/// Time of a loss that nothing follows. The closing token is stamped by a clock that nobody advances
/// (`gfx11/gfx11token.cpp`).
pub(crate) const CLOSING_LOSS_TIME: i64 = 0;

/// gfx10 and gfx11 stop for good in front of a window of padding near the end of a chunk if nothing is held back, however
/// much lies behind the window (`gfx10/gfx10token.cpp`).
pub(crate) const GIVES_UP_BEHIND_PADDING: bool = true;

/// Only the tail of gfx1250 hands clock tokens on while a loss waits to be told (`mi400/mi400token.cpp`).
pub(crate) const TAIL_TELLS_LOSS_BY_CLOCK_TOKENS: &[Generation] = &[Generation::Gfx1250];

/// Bits that must lie behind the window for a NEW_PC to be read where it stands; otherwise its fields are read eight bits
/// too early (`gfx12/gfx12token.cpp`, `mi400/mi400token.cpp`).
pub(crate) const fn new_pc_needs_behind(generation: Generation) -> u64 {
    match generation {
        Generation::Gfx1250 => 8,
        _ => 65,
    }
}

/// Whether a sample of the real-time clock is averaged with the last one if a clock ran back. The main part and the tail
/// of a chunk are read by two copies of a loop, which differ in this.
pub(crate) const fn merges_samples(generation: Generation, is_in_main: bool) -> bool {
    match generation {
        Generation::Gfx1250 => true,
        Generation::Gfx12 => is_in_main,
        _ => !is_in_main,
    }
}

/// Padding between a WAVE_START_EXT and the bytes that continue it does not end the continuation; in the quick scan it
/// does so on gfx1250 (`gfx12/quick_scan.cpp`, `mi400/quick_scan.cpp`).
pub(crate) const PADDING_ENDS_CONTINUATION_IN_QUICK_SCAN: &[Generation] = &[Generation::Gfx1250];

/// In the quick scan a token that is cut off by the end of a chunk counts, and lengths on gfx1250 that are no whole bytes
/// are rounded down, not up (`mi400/quick_scan.cpp`).
pub(crate) const QUICK_SCAN_ROUNDS_DOWN: &[Generation] = &[Generation::Gfx1250];

/// Header version that gfx9 streams count as, since nothing sets one for them. The scale of LDS sizes that was meant for
/// MI350 reaches every gfx9 stream this way (`trace_parser.cpp`).
pub(crate) const GFX9_AS_VERSION: u8 = 1;

/// gfx9: the end of a wave of the target that nothing is known of, or whose context is away, leaves no trace
/// (`gfx9/gfx9wave.cpp`).
pub(crate) const TARGET_END_NEEDS_RUNNING_WAVE: bool = true;

/// gfx9: the sample that closes a gap of a performance counter has the time of the sample behind the gap, not that of the
/// interval's end (`gfx9/gfx9wave.cpp`).
pub(crate) const GAP_CLOSES_AT_NEXT_SAMPLE: bool = true;

/// Instructions that the look-ahead for a left-out barrier wait moves on by when it has compared one: the loop's own
/// step, and another (`stitch/stitch.cpp`).
pub(crate) const LOOK_AHEAD_STEP: usize = 2;
