//! Token tables: one constant per generation.
//!
//! Layout facts: `projects/rocprof-trace-decoder/source/gfx1{0,1,2}/gfx1*token.cpp` and `mi400/mi400token.cpp` of
//! ROCm/rocm-systems; ALUEXEC and VMEMEXEC: `tinygrad/renderer/amd/sqtt.py` of tinygrad/tinygrad. Patterns are
//! binary numbers whose last digit is the first bit of the token.

use super::entry::{NIBBLE, NO_DELTA, Row, Table, build, row};
use super::kind::TokenKind::{self, *};
use crate::generation::Generation;

/// Bits per unit of gfx1250 streams.
const BYTE: u8 = 8;

const fn time(pattern: &'static str, add: u8) -> Row {
    Row { kind: Time, pattern, bits: 8, delta: (4, 8), add }
}

/// Rows with one description on gfx10 and gfx11.
const SHADER_DATA_10: [Row; 2] =
    [row(ShaderData, "00110", 52, (5, 8)), row(ShaderDataShort, "10110", 28, (5, 8))];

/// Rows that gfx10, gfx11 and gfx12 share.
const NIBBLE_ROWS: [Row; 20] = [
    row(Nop, "0000", 4, NO_DELTA),
    time("1000", 4),
    row(Header, "0010001", 64, NO_DELTA),
    row(Misc, "1010001", 24, (7, 16)),
    row(RegInit, "1110001", 64, (7, 10)),
    row(Event, "01100001", 24, (8, 11)),
    row(EventSync, "11100001", 32, (8, 11)),
    row(ValuInst, "011", 12, (3, 6)),
    row(ImmOne, "1101", 12, (4, 7)),
    row(Reg, "1001", 64, (4, 7)),
    row(Immediate, "00100", 24, (5, 8)),
    row(WaveStart, "01100", 32, (5, 7)),
    row(WaveReady, "10100", 24, (5, 8)),
    row(WaveEnd, "10101", 20, (5, 8)),
    // The public decoder has no entry for these two and loses sync on captures that enable them.
    row(AluExec, "1110", 8, (4, 6)),
    row(VmemExec, "1111", 8, (4, 6)),
    // Patterns nobody defines: stepped over one nibble at a time.
    row(Unknown, "0111", 4, NO_DELTA),
    row(Unknown, "1000001", 4, NO_DELTA),
    // Differ in nothing but the header version behind them.
    row(UtilCounter, "0110001", 64, (7, 9)),
    row(Timestamp, "0000001", 64, NO_DELTA),
];

const GFX10_ROWS: [Row; 26] = join(
    NIBBLE_ROWS,
    [
        row(NewPc, "0100001", 64, (8, 11)),
        row(Inst, "010", 20, (4, 7)),
        row(WaveAlloc, "00101", 20, (5, 8)),
        row(WaveStartExt, "11100", 48, (5, 7)),
        SHADER_DATA_10[0],
        SHADER_DATA_10[1],
    ],
);

const GFX11_ROWS: [Row; 26] =
    resize(resize(GFX10_ROWS, UtilCounter, row(UtilCounter11, "0110001", 48, (7, 9))), Timestamp, {
        row(Timestamp, "0000001", 48, NO_DELTA)
    });

const GFX12_ROWS: [Row; 30] = join(
    resize(NIBBLE_ROWS, UtilCounter, row(UtilCounter11, "0110001", 48, (7, 9))),
    [
        row(NewPc12, "0100001", 72, (8, 11)),
        row(Inst, "010", 20, (3, 6)),
        row(WaveAlloc, "00101", 24, (5, 8)),
        row(WaveStartExt, "11100", 40, (5, 7)),
        row(ShaderData, "0000110", 56, (7, 10)),
        row(ShaderDataShort, "1000110", 32, (7, 10)),
        row(ExecPopcount1, "1100110", 24, (7, 10)),
        row(ExecPopcount3, "010110", 48, (6, 9)),
        // Left over from gfx11 where the new rows do not cover the old ones; hardware does not send them.
        row(ShaderData, "0100110", 52, (5, 8)),
        row(ShaderDataShort, "110110", 28, (5, 8)),
    ],
);

/// gfx1250, VALU_INST apart: its increment is a table of the selector (see [`GFX1250`]).
const GFX1250_ROWS: [Row; 31] = [
    row(Nop, "0000", 8, NO_DELTA),
    time("1110", 1),
    time("1000", 1),
    row(MediumTime, "10100110", 16, (8, 16)),
    row(Timestamp, "0000001", 64, NO_DELTA),
    row(Header, "0010001", 64, NO_DELTA),
    row(NewPc12, "0100001", 72, (8, 11)),
    row(UtilCounter11, "0110001", 48, (7, 9)),
    row(Misc, "1010001", 24, (7, 10)),
    row(RegInit, "1110001", 64, (7, 10)),
    row(WaveEnd, "1000001", 24, (7, 10)),
    row(WaveEnd, "10101", 20, (5, 8)), // leftover
    row(Event, "01100001", 24, (8, 11)),
    row(EventSync, "11100001", 32, (8, 11)),
    row(Inst, "0010", 24, (4, 6)),
    row(Inst, "1010", 20, (3, 6)), // leftover
    row(ValuInst, "011", 8, NO_DELTA),
    row(ImmOne, "1101", 16, (7, 10)),
    row(Reg, "1001", 64, (4, 7)),
    row(Immediate, "00100", 24, (5, 8)),
    row(WaveReady, "10100", 24, (5, 8)),
    row(WaveAlloc, "00101", 24, (5, 8)),
    row(ShaderData, "0000110", 56, (7, 10)),
    row(ShaderDataShort, "1000110", 32, (7, 10)),
    row(ShaderDataShort, "110110", 28, (5, 8)), // leftover
    row(LdsConfig, "00100110", 24, (8, 10)),
    row(ExecPopcount1, "1100110", 24, (7, 10)),
    row(ExecPopcount3, "010110", 48, (6, 9)),
    row(WaveStart, "01100", 32, (5, 7)),
    row(WaveStartExt, "11100", 40, (5, 7)),
    row(Unknown, "111", 8, NO_DELTA), // nibbles 0111 and 1111
];

/// Time increment of a gfx1250 VALU_INST by its four-bit selector.
const VALU_DELTA: [u8; 16] = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 1, 2];

const fn join<const A: usize, const B: usize, const N: usize>(left: [Row; A], right: [Row; B]) -> [Row; N] {
    assert!(A + B == N);
    let mut all = [row(Unknown, "0", 4, NO_DELTA); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < A { left[at] } else { right[at - A] };
        at += 1;
    }
    all
}

/// The same rows with the one of kind `old` replaced.
const fn resize<const N: usize>(mut rows: [Row; N], old: TokenKind, new: Row) -> [Row; N] {
    let mut at = 0;
    while at < N {
        if rows[at].kind as u8 == old as u8 {
            rows[at] = new;
        }
        at += 1;
    }
    rows
}

const fn with_valu_delta(mut table: Table) -> Table {
    let mut prefix = 0;
    while prefix < table.len() {
        if matches!(table[prefix].kind, ValuInst) {
            table[prefix].delta = VALU_DELTA[prefix >> 4 & 15];
        }
        prefix += 1;
    }
    table
}

/// RDNA 1 and 2.
pub(crate) static GFX10: Table = build(&GFX10_ROWS, NIBBLE);
/// RDNA 3.
pub(crate) static GFX11: Table = build(&GFX11_ROWS, NIBBLE);
/// RDNA 4.
pub(crate) static GFX12: Table = build(&GFX12_ROWS, NIBBLE);
/// gfx1250.
pub(crate) static GFX1250: Table = with_valu_delta(build(&GFX1250_ROWS, BYTE));

/// Bits of the MISC type field that gfx9 tokens keep their increment in, and everything else's single bit.
pub(super) const GFX9_ROWS: [Row; 16] = [
    row(Misc, "0000", 16, (4, 12)),
    row(Time, "0001", 64, (4, 5)),
    row(Reg, "0010", 64, (4, 5)),
    row(WaveStart, "0011", 32, (4, 5)),
    row(WaveAlloc, "0100", 16, (4, 5)),
    row(RegCs, "0101", 48, (4, 5)),
    row(WaveEnd, "0110", 16, (4, 5)),
    row(Event, "0111", 16, (4, 5)),
    row(EventCs, "1000", 16, (4, 5)),
    row(EventGfx1, "1001", 16, (4, 5)),
    row(Inst, "1010", 16, (4, 5)),
    row(InstPc, "1011", 64, (4, 5)),
    row(ShaderData9, "1100", 48, (4, 5)),
    row(Issue, "1101", 32, (4, 5)),
    row(Perf, "1110", 64, (4, 5)),
    row(RegCsPriv, "1111", 48, (4, 5)),
];

/// MI200, MI300 and MI350. Increments count in [`GFX9_CLOCKS_PER_TICK`](super::gfx9::GFX9_CLOCKS_PER_TICK).
pub(crate) static GFX9: Table = build(&GFX9_ROWS, 16);

/// The table of a generation.
pub(crate) fn table(generation: Generation) -> &'static Table {
    match generation {
        Generation::Gfx9 => &GFX9,
        Generation::Gfx10 => &GFX10,
        Generation::Gfx11 => &GFX11,
        Generation::Gfx12 => &GFX12,
        Generation::Gfx1250 => &GFX1250,
    }
}

/// The rows of a generation. Of several rows of one kind the first is what hardware sends.
pub(crate) fn rows(generation: Generation) -> &'static [Row] {
    match generation {
        Generation::Gfx9 => &GFX9_ROWS,
        Generation::Gfx10 => &GFX10_ROWS,
        Generation::Gfx11 => &GFX11_ROWS,
        Generation::Gfx12 => &GFX12_ROWS,
        Generation::Gfx1250 => &GFX1250_ROWS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Generation; 5] =
        [Generation::Gfx9, Generation::Gfx10, Generation::Gfx11, Generation::Gfx12, Generation::Gfx1250];

    /// Independent of `build`: finds the row by the text of the patterns.
    fn row_of(generation: Generation, digits: &str) -> &'static Row {
        let matching: Vec<_> = rows(generation).iter().filter(|row| digits.ends_with(row.pattern)).collect();
        assert_eq!(matching.len(), 1, "{generation:?} {digits}: {matching:?}");
        matching[0]
    }

    #[test]
    fn every_prefix_matches_exactly_one_row_of_every_generation() {
        for generation in ALL {
            for (prefix, entry) in table(generation).iter().enumerate() {
                let digits = format!("{prefix:012b}");
                let mut row = row_of(generation, &digits);
                let pad = if entry.is_special() { 0 } else { entry.pad };
                if pad > 0 {
                    assert_eq!((row.kind, pad), (Nop, 4));
                    row = row_of(generation, &digits[..8]);
                }
                assert_eq!((entry.kind, entry.step), (row.kind, row.bits + pad), "{generation:?} {digits}");
            }
        }
    }

    #[test]
    fn increments_are_those_of_the_rows() {
        for generation in ALL {
            for (prefix, entry) in
                table(generation).iter().enumerate().filter(|(_, entry)| !entry.is_special())
            {
                let digits = format!("{prefix:012b}");
                let digits = &digits[..12 - usize::from(entry.pad)];
                let row = row_of(generation, digits);
                let field =
                    &digits[digits.len() - usize::from(row.delta.1)..digits.len() - usize::from(row.delta.0)];
                let expected = match row.kind {
                    ValuInst if generation == Generation::Gfx1250 => VALU_DELTA[prefix >> 4 & 15],
                    _ => row.add + u8::from_str_radix(field, 2).unwrap_or(0),
                };
                assert_eq!(entry.delta, expected, "{generation:?} {digits}");
            }
        }
    }
}
