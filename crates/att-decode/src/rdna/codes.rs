//! What the code of an INST token means: one table per header version.
//!
//! Facts: `gfx1{0,1,2}/gfx1*wave.cpp` and `mi400/mi400wave.cpp` below `projects/rocprof-trace-decoder/source` of
//! ROCm/rocm-systems.

use crate::record::Category::{self, Bvh, Flat, Immed, Jump, Lds, Msg, Next, Salu, Smem, Trap, Valu, Vmem};

/// Return from a trap.
pub(crate) const TRAP_RETURN: u16 = 117;
/// A trap is entered.
pub(crate) const TRAP_ENTRY: u16 = 6;
/// A scalar instruction writes the program counter.
pub(crate) const PC_WRITE: u16 = 5;
/// First and last code (low eight bits) whose wave enters the gfx1250 list of recent waves.
pub(crate) const RECENT: (u8, u8) = (10, 14);

/// How the cycles of a code come about, and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rule {
    /// No effect.
    Nothing,
    /// As they stand.
    Fixed,
    /// As they stand, and the code does more than issue: see the wave.
    Particular,
    /// Times the double-precision rate.
    Rated,
    /// The double-precision rate times the derate.
    Derated,
    /// Shifted right by the trans2 setting.
    Transcendental,
    /// As they stand, on a SIMD that is not traced.
    Other,
    /// A matrix scale load, merged with the next instruction.
    Scale,
    /// Replay: the last instructions are taken back.
    Rewind,
}

/// Meaning of one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) category: Category,
    pub(crate) rule: Rule,
    pub(crate) cycles: u16,
}

/// Codes are nine bits at most.
pub(crate) type Codes = [Code; 512];

const NOTHING: Code = Code { category: Category::None, rule: Rule::Nothing, cycles: 0 };
const DERATED: Code = Code { category: Valu, rule: Rule::Derated, cycles: 1 };
const TRANSCENDENTAL: Code = Code { category: Valu, rule: Rule::Transcendental, cycles: 4 };
const SCALE: Code = Code { category: Valu, rule: Rule::Scale, cycles: 1 };
const REWIND: Code = Code { category: Category::None, rule: Rule::Rewind, cycles: 0 };

const fn own(category: Category, cycles: u16) -> Code {
    Code { category, rule: Rule::Fixed, cycles }
}

const fn other(category: Category, cycles: u16) -> Code {
    Code { category, rule: Rule::Other, cycles }
}

const fn rated(category: Category, cycles: u16) -> Code {
    Code { category, rule: Rule::Rated, cycles }
}

/// Neighbouring codes with one meaning, or with one more cycle each.
struct Run {
    first: u16,
    last: u16,
    code: Code,
    rises: u16,
}

const fn one(code: u16, meaning: Code) -> Run {
    Run { first: code, last: code, code: meaning, rises: 0 }
}

const fn same(first: u16, last: u16, meaning: Code) -> Run {
    Run { first, last, code: meaning, rises: 0 }
}

const fn rising(first: u16, last: u16, meaning: Code) -> Run {
    Run { first, last, code: meaning, rises: 1 }
}

const fn build(runs: &[Run]) -> Codes {
    let mut codes = [NOTHING; 512];
    let mut at = 0;
    while at < runs.len() {
        let Run { first, last, code, rises } = runs[at];
        let mut number = first;
        while number <= last {
            assert!(matches!(codes[number as usize].rule, Rule::Nothing), "two runs claim one code");
            codes[number as usize] = Code { cycles: code.cycles + rises * (number - first), ..code };
            number += 1;
        }
        at += 1;
    }
    let mut number = 0;
    while number < codes.len() {
        let is_particular = matches!(number as u16, TRAP_RETURN | TRAP_ENTRY | PC_WRITE)
            || matches!(codes[number].category, Immed);
        if is_particular {
            codes[number].rule = Rule::Particular;
        }
        number += 1;
    }
    codes
}

/// Header versions 1 and 2.
pub(crate) static GFX10: Codes = build(&[
    one(0, own(Salu, 1)),
    same(1, 2, own(Smem, 1)),
    one(3, own(Jump, 1)),
    one(4, own(Next, 1)),
    one(5, own(Salu, 1)),
    one(6, own(Trap, 1)),
    one(7, own(Salu, 1)),
    one(8, own(Trap, 1)),
    one(9, own(Msg, 1)),
    one(10, own(Valu, 1)),
    one(11, own(Valu, 4)),
    one(12, rated(Valu, 1)),
    one(13, rated(Valu, 2)),
    one(14, rated(Valu, 4)),
    one(15, rated(Valu, 16)),
    one(16, rated(Valu, 1)),
    one(17, rated(Valu, 1)),
    one(18, own(Valu, 1)),
    one(19, own(Immed, 1)),
    rising(30, 34, own(Flat, 1)),
    same(35, 36, own(Vmem, 1)),
    rising(37, 40, own(Vmem, 2)),
    same(41, 42, own(Lds, 1)),
    rising(43, 46, own(Lds, 2)),
    rising(47, 48, own(Vmem, 1)),
    rising(49, 54, own(Vmem, 1)),
    rising(55, 66, own(Vmem, 1)),
    rising(68, 71, own(Vmem, 1)),
    rising(72, 78, own(Vmem, 2)),
    rising(103, 104, own(Bvh, 8)),
    rising(105, 106, own(Bvh, 11)),
    same(110, 111, own(Lds, 1)),
    same(112, 113, own(Salu, 1)),
]);

/// Header version 3.
pub(crate) static GFX11: Codes = build(&[
    one(0, own(Salu, 1)),
    same(1, 2, own(Smem, 1)),
    one(3, own(Jump, 1)),
    one(4, own(Next, 1)),
    one(5, own(Salu, 1)),
    one(6, own(Trap, 1)),
    one(7, own(Salu, 1)),
    one(8, own(Trap, 1)),
    one(9, own(Msg, 1)),
    one(10, rated(Valu, 1)),
    one(11, own(Valu, 4)),
    rising(12, 13, own(Valu, 1)),
    one(14, own(Valu, 4)),
    one(15, rated(Valu, 1)),
    same(16, 18, own(Valu, 1)),
    one(19, own(Immed, 1)),
    rising(28, 32, own(Flat, 2)),
    rising(33, 34, own(Vmem, 1)),
    rising(35, 40, own(Vmem, 1)),
    same(41, 42, own(Lds, 1)),
    rising(43, 46, own(Lds, 2)),
    rising(47, 48, own(Vmem, 1)),
    rising(49, 54, own(Vmem, 1)),
    rising(55, 66, own(Vmem, 1)),
    rising(68, 71, own(Vmem, 1)),
    rising(72, 78, own(Vmem, 2)),
    rising(80, 84, other(Lds, 1)),
    rising(85, 89, other(Flat, 2)),
    rising(90, 101, other(Vmem, 1)),
    rising(103, 104, own(Bvh, 8)),
    rising(105, 106, own(Bvh, 11)),
    same(110, 111, own(Lds, 1)),
    same(112, 114, own(Salu, 1)),
    rising(115, 116, own(Valu, 1)),
    one(117, own(Salu, 1)),
    one(118, own(Lds, 6)),
    one(119, other(Lds, 6)),
]);

/// Header version 4.
pub(crate) static GFX12: Codes = build(&[
    one(0, own(Salu, 1)),
    same(1, 2, own(Smem, 1)),
    one(3, own(Jump, 1)),
    one(4, own(Next, 1)),
    one(5, own(Salu, 1)),
    one(6, own(Trap, 1)),
    one(7, own(Salu, 1)),
    one(8, own(Trap, 1)),
    one(9, own(Msg, 1)),
    one(10, own(Valu, 1)),
    one(11, own(Valu, 4)),
    rising(12, 13, own(Valu, 1)),
    one(14, own(Valu, 4)),
    one(15, own(Valu, 16)),
    one(18, own(Valu, 1)),
    one(19, own(Immed, 1)),
    rising(28, 32, own(Flat, 2)),
    rising(33, 34, own(Vmem, 1)),
    rising(35, 40, own(Vmem, 1)),
    same(41, 42, own(Lds, 1)),
    rising(43, 46, own(Lds, 2)),
    rising(47, 48, own(Vmem, 1)),
    rising(49, 54, own(Vmem, 1)),
    rising(55, 66, own(Vmem, 1)),
    rising(68, 71, own(Vmem, 1)),
    rising(72, 78, own(Vmem, 2)),
    rising(80, 84, other(Lds, 1)),
    rising(85, 89, other(Flat, 2)),
    rising(103, 104, own(Bvh, 8)),
    rising(105, 106, own(Bvh, 11)),
    same(110, 111, own(Lds, 1)),
    one(114, own(Salu, 1)),
    rising(115, 116, own(Valu, 1)),
    one(117, own(Salu, 1)),
    one(118, own(Bvh, 6)),
    one(119, other(Lds, 6)),
    one(120, other(Lds, 10)),
    one(121, own(Bvh, 10)),
    one(122, own(Msg, 1)),
    same(135, 137, own(Salu, 1)),
    one(138, own(Msg, 1)),
    one(140, own(Valu, 8)),
    one(141, own(Valu, 16)),
    one(142, own(Valu, 32)),
    one(143, own(Valu, 64)),
    one(146, rated(Valu, 1)),
    one(147, DERATED),
    same(150, 151, own(Smem, 1)),
    one(152, own(Salu, 3)),
    one(153, own(Valu, 1)),
    one(155, own(Salu, 2)),
    one(156, own(Salu, 5)),
    // Codes counting up: their place is their cycle number.
    rising(188, 221, other(Vmem, 1)),
    rising(222, 511, own(Vmem, 1)),
]);

/// Header version 5.
pub(crate) static GFX1250: Codes = build(&[
    one(0, own(Salu, 1)),
    same(1, 2, own(Smem, 1)),
    one(3, own(Jump, 1)),
    one(4, own(Next, 1)),
    one(5, own(Salu, 1)),
    one(6, own(Trap, 1)),
    one(7, own(Salu, 1)),
    one(8, own(Trap, 1)),
    one(9, own(Msg, 1)),
    one(10, own(Valu, 1)),
    one(11, TRANSCENDENTAL),
    rising(12, 13, own(Valu, 1)),
    one(14, own(Valu, 4)),
    one(15, own(Valu, 16)),
    one(16, own(Valu, 32)),
    one(17, own(Valu, 8)),
    one(18, own(Valu, 1)),
    one(19, own(Immed, 1)),
    rising(26, 27, own(Flat, 1)),
    rising(28, 32, own(Flat, 2)),
    rising(33, 34, own(Vmem, 1)),
    rising(35, 40, own(Vmem, 1)),
    same(41, 42, own(Lds, 1)),
    rising(43, 46, own(Lds, 2)),
    rising(47, 48, own(Vmem, 1)),
    rising(49, 54, own(Vmem, 1)),
    rising(55, 66, own(Vmem, 1)),
    rising(68, 71, own(Vmem, 1)),
    rising(72, 78, own(Vmem, 2)),
    one(79, REWIND),
    rising(80, 84, other(Lds, 1)),
    rising(85, 89, other(Flat, 2)),
    rising(103, 104, own(Bvh, 8)),
    rising(105, 106, own(Bvh, 11)),
    same(110, 111, own(Lds, 1)),
    one(114, own(Salu, 1)),
    rising(115, 116, own(Valu, 1)),
    one(117, own(Salu, 1)),
    one(119, other(Lds, 6)),
    one(120, other(Lds, 10)),
    one(122, own(Msg, 1)),
    same(135, 137, own(Salu, 1)),
    one(138, own(Msg, 1)),
    same(150, 151, own(Smem, 1)),
    one(152, own(Salu, 3)),
    one(153, own(Valu, 1)),
    one(155, own(Salu, 2)),
    one(156, own(Salu, 5)),
    same(157, 159, own(Vmem, 1)),
    same(160, 161, own(Vmem, 2)),
    one(162, own(Vmem, 3)),
    one(163, own(Vmem, 5)),
    one(169, own(Valu, 1)),
    same(170, 171, own(Vmem, 1)),
    one(173, own(Lds, 1)),
    one(174, own(Msg, 1)),
    one(175, own(Valu, 16)),
    one(176, own(Valu, 32)),
    one(177, own(Valu, 16)),
    one(178, own(Valu, 8)),
    one(179, own(Valu, 16)),
    one(180, own(Valu, 1)),
    one(181, own(Valu, 4)),
    one(182, own(Valu, 2)),
    one(183, SCALE),
    one(184, own(Valu, 4)),
    one(187, own(Valu, 32)),
    rising(188, 221, other(Vmem, 1)),
    rising(222, 511, own(Vmem, 1)),
]);

/// The table of a header version; versions nobody knows read as gfx10.
pub(crate) fn codes(version: u8) -> &'static Codes {
    match version {
        0..=2 => &GFX10,
        3 => &GFX11,
        4 => &GFX12,
        _ => &GFX1250,
    }
}
