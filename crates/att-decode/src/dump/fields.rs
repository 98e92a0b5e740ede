//! Names and places of token fields, for people. What the decoder itself uses stands with the code that uses it.

use crate::generation::Generation;
use crate::token::TokenKind;

/// Name, first bit, bit behind the last.
pub(crate) type FieldRow = (&'static str, u8, u8);

/// The fields of a kind of token in a stream whose latest header has this version.
pub(crate) fn fields(generation: Generation, version: u8, kind: TokenKind) -> &'static [FieldRow] {
    match (generation, version) {
        (Generation::Gfx10, _) if kind == TokenKind::Timestamp => &[("type", 14, 16), ("value", 16, 64)],
        (Generation::Gfx9, _) => gfx9(kind),
        (_, 0..=3) => by_gfx11(kind),
        (_, 4) => by_gfx12(kind),
        _ => by_gfx1250(kind),
    }
}

fn gfx9(kind: TokenKind) -> &'static [FieldRow] {
    match kind {
        TokenKind::SwHeader => {
            &[("version", 13, 16), ("simds", 16, 20), ("cu", 20, 25), ("sa", 25, 26), ("se", 26, 32)]
        }
        TokenKind::Misc => &[("sh", 12, 13), ("type", 13, 16)],
        TokenKind::Time => &[("time", 16, 64)],
        TokenKind::Reg => &[
            ("pipe", 5, 7),
            ("me", 7, 9),
            ("type", 10, 13),
            ("valid", 15, 16),
            ("register", 16, 32),
            ("data", 32, 64),
        ],
        TokenKind::RegCs | TokenKind::RegCsPriv => {
            &[("pipe", 5, 7), ("me", 7, 9), ("register", 9, 16), ("data", 16, 48)]
        }
        TokenKind::WaveStart => &[
            ("sh", 5, 6),
            ("cu", 6, 10),
            ("simd", 14, 16),
            ("slot", 10, 14),
            ("pipe", 16, 18),
            ("me", 18, 20),
            ("count", 22, 29),
            ("group", 29, 32),
        ],
        TokenKind::WaveAlloc | TokenKind::WaveEnd => {
            &[("sh", 5, 6), ("cu", 6, 10), ("simd", 14, 16), ("slot", 10, 14)]
        }
        TokenKind::ShaderData9 => {
            &[("sh", 5, 6), ("cu", 6, 10), ("simd", 14, 16), ("slot", 10, 14), ("data", 16, 48)]
        }
        TokenKind::Inst => &[("simd", 9, 11), ("slot", 5, 9), ("code", 11, 16)],
        TokenKind::InstPc => &[("simd", 9, 11), ("slot", 5, 9), ("error", 15, 16), ("words", 16, 64)],
        TokenKind::Issue => &[
            ("simd", 5, 7),
            ("s0", 8, 10),
            ("s1", 10, 12),
            ("s2", 12, 14),
            ("s3", 14, 16),
            ("s4", 16, 18),
            ("s5", 18, 20),
            ("s6", 20, 22),
            ("s7", 22, 24),
            ("s8", 24, 26),
            ("s9", 26, 28),
        ],
        TokenKind::Perf => &[
            ("sh", 5, 6),
            ("cu", 6, 10),
            ("bank", 10, 12),
            ("c0", 12, 25),
            ("c1", 25, 38),
            ("c2", 38, 51),
            ("c3", 51, 64),
        ],
        _ => &[],
    }
}

/// Fields that stand in the same place in every RDNA version.
fn common(kind: TokenKind) -> &'static [FieldRow] {
    match kind {
        TokenKind::Header => &[
            ("version", 7, 13),
            ("simd", 13, 15),
            ("wgp", 15, 18),
            ("sa", 19, 20),
            ("double_rate", 28, 31),
            ("derate", 33, 36),
            ("double_buffer", 43, 44),
            ("no_barrier_wait", 59, 60),
        ],
        TokenKind::Reg => {
            &[("pipe", 7, 9), ("me", 9, 11), ("compute", 15, 16), ("register", 16, 32), ("data", 32, 64)]
        }
        TokenKind::RegInit => &[
            ("vmid", 10, 14),
            ("pipe", 14, 16),
            ("me", 16, 18),
            ("type", 18, 20),
            ("data", 20, 52),
            ("sync", 52, 62),
        ],
        TokenKind::Event => {
            &[("bop", 11, 12), ("kind", 12, 14), ("pipe", 14, 16), ("me", 16, 18), ("id", 18, 24)]
        }
        TokenKind::Immediate | TokenKind::WaveReady => &[("waves", 8, 24)],
        TokenKind::ValuInst => &[("w64h", 6, 7), ("slot", 7, 12)],
        TokenKind::ImmOne => &[("slot", 7, 12)],
        TokenKind::AluExec | TokenKind::VmemExec => &[("unit", 6, 8)],
        TokenKind::Misc => &[("flags", 16, 24)],
        TokenKind::NewPc => &[("slot", 11, 16), ("words", 16, 62), ("error", 62, 63)],
        TokenKind::NewPc12 => &[("slot", 11, 16), ("words", 16, 71), ("error", 71, 72)],
        _ => &[],
    }
}

fn by_gfx11(kind: TokenKind) -> &'static [FieldRow] {
    match kind {
        TokenKind::Timestamp => &[("lost", 8, 9), ("realtime", 9, 10), ("value", 12, 48)],
        TokenKind::WaveStart | TokenKind::WaveStartExt => &[
            ("sa", 7, 8),
            ("wgp", 10, 13),
            ("simd", 8, 10),
            ("slot", 13, 18),
            ("queue", 18, 21),
            ("pipe", 21, 23),
            ("me", 23, 24),
            ("count", 25, 32),
        ],
        TokenKind::WaveEnd => &[("sa", 8, 9), ("wgp", 11, 14), ("simd", 9, 11), ("slot", 15, 20)],
        TokenKind::Inst => &[("w64h", 7, 8), ("slot", 8, 13), ("code", 13, 20)],
        TokenKind::ShaderData => &[
            ("sa", 8, 9),
            ("wgp", 11, 14),
            ("simd", 9, 11),
            ("slot", 15, 20),
            ("invalid", 14, 15),
            ("data", 20, 52),
        ],
        TokenKind::ShaderDataShort => &[
            ("sa", 8, 9),
            ("wgp", 11, 14),
            ("simd", 9, 11),
            ("slot", 15, 20),
            ("invalid", 14, 15),
            ("data", 20, 28),
        ],
        kind => common(kind),
    }
}

fn by_gfx12(kind: TokenKind) -> &'static [FieldRow] {
    match kind {
        TokenKind::Timestamp => &[("realtime", 7, 8), ("lost", 8, 9), ("value", 12, 64)],
        TokenKind::WaveStart => &[
            ("sa", 7, 8),
            ("wgp", 10, 14),
            ("simd", 8, 10),
            ("slot", 15, 20),
            ("pipe", 20, 22),
            ("me", 22, 23),
            ("count", 25, 32),
        ],
        TokenKind::WaveStartExt => &[
            ("sa", 7, 8),
            ("wgp", 10, 14),
            ("simd", 8, 10),
            ("slot", 15, 20),
            ("pipe", 20, 22),
            ("me", 22, 23),
            ("count", 25, 32),
            ("lds", 32, 33),
            ("group", 33, 38),
            ("last", 38, 39),
        ],
        TokenKind::WaveEnd => &[("sa", 8, 9), ("wgp", 11, 15), ("simd", 9, 11), ("slot", 15, 20)],
        TokenKind::Inst => &[("w64h", 6, 7), ("slot", 7, 12), ("code", 12, 20)],
        TokenKind::ShaderData => &[
            ("sa", 10, 11),
            ("wgp", 13, 17),
            ("simd", 11, 13),
            ("slot", 17, 22),
            ("data", 22, 54),
            ("kind", 54, 56),
        ],
        TokenKind::ShaderDataShort => &[
            ("sa", 10, 11),
            ("wgp", 13, 17),
            ("simd", 11, 13),
            ("slot", 17, 22),
            ("data", 22, 30),
            ("kind", 30, 32),
        ],
        kind => common(kind),
    }
}

fn by_gfx1250(kind: TokenKind) -> &'static [FieldRow] {
    match kind {
        TokenKind::Header => &[
            ("version", 7, 13),
            ("simd", 13, 15),
            ("wgp", 15, 19),
            ("sa", 19, 20),
            ("double_buffer", 43, 44),
            ("trans2", 60, 61),
        ],
        TokenKind::WaveEnd => &[("sa", 10, 11), ("wgp", 13, 17), ("simd", 11, 13), ("slot", 17, 22)],
        TokenKind::Inst => &[("second", 6, 7), ("slot", 7, 12), ("code", 12, 21)],
        TokenKind::ValuInst => &[("selector", 4, 8)],
        TokenKind::ImmOne => &[("slot", 10, 15)],
        TokenKind::Misc => {
            &[("flags", 10, 17), ("cluster_first", 17, 18), ("cluster_last", 18, 19), ("cluster", 19, 23)]
        }
        kind => by_gfx12(kind),
    }
}
