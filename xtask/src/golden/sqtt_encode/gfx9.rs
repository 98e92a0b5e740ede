//! gfx9 tokens by the public format description (units of 16 bits, kind in the lowest four).

use wavescope_software_gpu::sqtt::BitWriter;
use wavescope_software_gpu::sqtt::gfx9::{Pipe, Place, SoftwareHeader, Token};

use super::Encoded;
use super::word::Word;

/// Clocks of one step.
const CLOCKS: u64 = 4;

/// Encodes the fields of `word`, a token of this kind that comes `clocks` after the one before.
pub(super) fn encode(kind: &str, word: &Word, clocks: u64) -> Option<Encoded> {
    if kind == "SW_HEADER" {
        return Some(software_header(word));
    }
    let token = token(kind, word)?;
    // Kind and time count as read.
    let (end, most) = if kind == "MISC" { (12, 255) } else { (5, 1) };
    word.f(0, end);
    let mut out = BitWriter::default();
    token.write(clocks / CLOCKS, &mut out);
    Some(Encoded { bits: token.bits(), word: taken(out), steps: (0, most * CLOCKS) })
}

fn token(kind: &str, word: &Word) -> Option<Token> {
    let place = || Place {
        sh: word.small(5, 6),
        cu: word.small(6, 10),
        slot: word.small(10, 14),
        simd: word.small(14, 16),
    };
    // The ME is stored plus one.
    let pipe = || Pipe { pipe: word.small(5, 7), me: (word.small(7, 9) + 3) & 3 };
    Some(match kind {
        "MISC" => Token::Misc { sh: word.small(12, 13), kind: word.small(13, 16) },
        "TIME" => Token::Time { clock: word.f(16, 64) },
        "REG" => Token::Reg {
            pipe: pipe(),
            mark: word.bit(9),
            kind: word.small(10, 13),
            valid: word.bit(15),
            register: word.f(16, 32) as u16,
            data: word.f(32, 64) as u32,
        },
        "WAVE_START" => Token::WaveStart {
            place: place(),
            pipe: Pipe { pipe: word.small(16, 18), me: word.small(18, 20) },
            lanes: word.small(22, 29),
            group: word.small(29, 32),
        },
        "WAVE_ALLOC" => Token::WaveAlloc { place: place() },
        "WAVE_END" => Token::WaveEnd { place: place() },
        "REG_CS" | "REG_CS_PRIV" => Token::RegCs {
            pipe: pipe(),
            register: word.small(9, 16),
            data: word.f(16, 48) as u32,
            private: kind == "REG_CS_PRIV",
        },
        "EVENT" => Token::Event { kind: 0, data: word.f(5, 16) as u16 },
        "EVENT_CS" => Token::Event { kind: 1, data: word.f(5, 16) as u16 },
        "EVENT_GFX1" => Token::Event { kind: 2, data: word.f(5, 16) as u16 },
        "INST" => Token::Inst { slot: word.small(5, 9), simd: word.small(9, 11), code: word.small(11, 16) },
        "INST_PC" => Token::InstPc {
            slot: word.small(5, 9),
            simd: word.small(9, 11),
            error: word.bit(15),
            pc: word.f(16, 64) * 4,
        },
        "SHADERDATA" => Token::ShaderData { place: place(), data: word.f(16, 48) as u32 },
        "ISSUE" => Token::Issue {
            simd: word.small(5, 7),
            slots: std::array::from_fn(|slot| word.small(8 + 2 * slot as u32, 10 + 2 * slot as u32)),
        },
        "PERF" => Token::Perf {
            sh: word.small(5, 6),
            cu: word.small(6, 10),
            bank: word.small(10, 12),
            counters: std::array::from_fn(|i| word.f(12 + 13 * i as u32, 25 + 13 * i as u32) as u16),
        },
        _ => return None,
    })
}

fn software_header(word: &Word) -> Encoded {
    let header = SoftwareHeader {
        legacy_version: word.f(0, 13) as u16,
        version: word.small(13, 16),
        simd_mask: word.small(16, 20),
        cu: word.small(20, 25),
        sa: word.small(25, 26),
        engine: word.small(26, 32),
        double_buffer: word.bit(32),
    };
    let mut out = BitWriter::default();
    header.write(&mut out);
    Encoded { bits: 64, word: taken(out), steps: (0, 0) }
}

/// The bits written.
pub(super) fn taken(mut out: BitWriter) -> u128 {
    out.pad(4);
    out.take(1).iter().rev().fold(0, |word, &dword| word << 32 | u128::from(dword))
}
