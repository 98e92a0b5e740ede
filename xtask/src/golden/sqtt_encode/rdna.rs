//! Tokens of gfx10 and later by the public format description.

use wavescope_software_gpu::sqtt::BitWriter;
use wavescope_software_gpu::sqtt::rdna::{Header, Leftover, Location, Pipe, Stamp};
pub(super) use wavescope_software_gpu::sqtt::rdna::{Layout, Token};

use super::Encoded;
use super::gfx9::taken;
use super::word::Word;

/// Encodes the fields of `word`, a token of this kind that comes `step` clocks after the one before.
pub(super) fn encode(layout: Layout, kind: &str, word: &Word, step: u64) -> Option<Encoded> {
    let reader = Reader { layout, word, step };
    let token = reader.control(kind).or_else(|| reader.wave(kind))?;
    let mut out = BitWriter::default();
    token.write(layout, step, &mut out);
    let steps = if kind == "TIMESTAMP" { (0, u64::MAX) } else { token.steps(layout) };
    Some(Encoded { bits: token.bits(layout), word: taken(out), steps })
}

/// Reads fields; pattern and time count as read.
struct Reader<'a> {
    layout: Layout,
    word: &'a Word,
    step: u64,
}

impl Reader<'_> {
    /// Whether the layout is that of gfx10 and gfx11.
    const fn is_old(&self) -> bool {
        matches!(self.layout, Layout::Gfx10 | Layout::Gfx11)
    }

    const fn is_gfx1250(&self) -> bool {
        matches!(self.layout, Layout::Gfx1250)
    }

    fn place(&self, at: u32, wgp: u32, slot: u32) -> Location {
        let word = self.word;
        Location {
            sa: word.small(at, at + 1),
            simd: word.small(at + 1, at + 3),
            unit: word.small(at + 3, at + 3 + wgp),
            slot: word.small(slot, slot + 5),
        }
    }

    fn pipe(&self, pipe: u32, me: u32) -> Pipe {
        Pipe { pipe: self.word.small(pipe, pipe + 2), me: self.word.small(me, me + 2) }
    }

    /// Time, registers, events and whatever is no wave's.
    fn control(&self, kind: &str) -> Option<Token> {
        let word = self.word;
        Some(match kind {
            "TIME" => {
                word.f(0, 8);
                Token::Time { alternate: word.f(0, 4) == 0b1110 }
            }
            "MEDIUM_TIME" => {
                word.f(0, 16);
                Token::MediumTime
            }
            "TIMESTAMP" => self.timestamp(),
            "HEADER" => self.header(),
            "MISC" => self.misc(),
            "REG" => {
                word.f(0, 7);
                Token::Reg {
                    pipe: self.pipe(7, 9),
                    rdp: word.bit(11),
                    context: word.small(12, 15),
                    compute: word.bit(15),
                    register: word.f(16, 32) as u16,
                    data: word.f(32, 64) as u32,
                }
            }
            "REG_INIT" => {
                word.f(0, 10);
                Token::RegInit {
                    vmid: word.small(10, 14),
                    pipe: self.pipe(14, 16),
                    kind: word.small(18, 20),
                    data: word.f(20, 52) as u32,
                    sync: word.f(52, 62) as u16,
                }
            }
            "EVENT" => {
                word.f(0, 11);
                let (bottom, kind, id) = (word.bit(11), word.small(12, 14), word.small(18, 24));
                Token::Event { bottom, kind, pipe: self.pipe(14, 16), id }
            }
            "EVENT_SYNC" => {
                word.f(0, 11);
                Token::EventSync { data: word.f(11, 32) as u32 }
            }
            "UTIL_COUNTER" | "UTIL_COUNTER11" => {
                word.f(0, 9);
                let end = if self.layout == Layout::Gfx10 { 64 } else { 48 };
                Token::UtilCounter { data: word.f(9, end) }
            }
            "LDS_CONFIG" => {
                word.f(0, 10);
                Token::LdsConfig { data: word.f(10, 24) as u16 }
            }
            "UNKNOWN" => Token::Unknown { bits: word.small(0, if self.is_gfx1250() { 8 } else { 4 }) },
            _ => return None,
        })
    }

    /// The elapsed clocks come from the dump's times, not from the bits.
    fn timestamp(&self) -> Token {
        let word = self.word;
        word.f(0, 7);
        let (stamp, lost, tag, from, to) = match self.layout {
            Layout::Gfx10 => {
                let stamp = match word.small(14, 16) {
                    1 => Stamp::Elapsed,
                    2 => Stamp::RealTime,
                    other => Stamp::Other(other),
                };
                (stamp, false, false, 16, 64)
            }
            Layout::Gfx11 => (real_time(word.bit(9)), word.bit(8), word.bit(10), 12, 48),
            Layout::Gfx12 | Layout::Gfx1250 => (real_time(word.bit(7)), word.bit(8), word.bit(9), 12, 64),
        };
        let value = word.f(from, to);
        let value = if stamp == Stamp::Elapsed { self.step } else { value };
        Token::Timestamp { stamp, lost, tag, value }
    }

    fn header(&self) -> Token {
        let word = self.word;
        word.f(0, 7);
        let wgp = if self.is_gfx1250() { 19 } else { 18 };
        Token::Header(Header {
            version: word.small(7, 13),
            simd: word.small(13, 15),
            wgp: word.small(15, wgp),
            sa: word.small(19, 20),
            chip: word.f(20, 64),
        })
    }

    fn misc(&self) -> Token {
        let word = self.word;
        if self.is_gfx1250() {
            word.f(0, 10);
            let cluster = (word.bit(17), word.bit(18), word.small(19, 23));
            Token::Misc { flags: word.small(10, 17), cluster: Some(cluster) }
        } else {
            word.f(0, 16);
            Token::Misc { flags: word.small(16, 24), cluster: None }
        }
    }

    /// Waves and their instructions.
    fn wave(&self, kind: &str) -> Option<Token> {
        let word = self.word;
        Some(match kind {
            "WAVE_START" | "WAVE_START_EXT" => self.wave_start(),
            "WSE_CONT" => Token::Continuation { byte: word.small(0, 8) },
            "WAVE_END" => self.wave_end(),
            "WAVE_ALLOC" => {
                word.f(0, 8);
                Token::WaveAlloc { data: word.f(8, if self.is_old() { 20 } else { 24 }) as u16 }
            }
            "WAVE_READY" | "IMMEDIATE" => {
                word.f(0, 8);
                let slots = word.f(8, 24) as u16;
                if kind == "IMMEDIATE" { Token::Immediate { slots } } else { Token::WaveReady { slots } }
            }
            "INST" => self.inst(),
            "VALU_INST" if self.is_gfx1250() => {
                word.f(0, 4);
                let position = match word.small(4, 8) {
                    selector @ 0..12 => selector / 4,
                    selector => selector / 2 - 3,
                };
                Token::ValuRecent { odd: word.bit(3), position }
            }
            "VALU_INST" => {
                word.f(0, 6);
                Token::ValuInst { half: word.bit(6), slot: word.small(7, 12) }
            }
            "IMM_ONE" if self.is_gfx1250() => {
                word.f(0, 4);
                word.f(7, 10);
                Token::ImmOne { slot: word.small(10, 15) }
            }
            "IMM_ONE" => {
                word.f(0, 7);
                Token::ImmOne { slot: word.small(7, 12) }
            }
            "ALUEXEC" | "VMEMEXEC" => {
                word.f(0, 6);
                let unit = word.small(6, 8);
                if kind == "ALUEXEC" { Token::AluExec { kind: unit } } else { Token::VmemExec { kind: unit } }
            }
            "NEW_PC" | "NEW_PC12" => {
                word.f(0, 11);
                let end = if self.is_old() { 62 } else { 71 };
                Token::NewPc { slot: word.small(11, 16), pc: word.f(16, end) * 4, error: word.bit(end) }
            }
            "SHADER_DATA" | "SHADER_DATA_SHORT" => self.shader_data(kind == "SHADER_DATA_SHORT"),
            "EXEC_POPCOUNT1" => {
                word.f(0, 10);
                Token::ExecPopcount1 { data: word.f(10, 24) as u16 }
            }
            "EXEC_POPCOUNT3" => {
                word.f(0, 9);
                Token::ExecPopcount3 { data: word.f(9, 48) }
            }
            _ => return None,
        })
    }

    fn wave_start(&self) -> Token {
        let word = self.word;
        let extended = word.f(0, 7) & 0x1F == 0b11100;
        let count = word.small(25, 32);
        if self.is_old() {
            Token::WaveStart {
                location: self.place(7, 3, 13),
                queue: word.small(18, 21),
                pipe: Pipe { pipe: word.small(21, 23), me: word.small(23, 24) },
                dispatcher: word.small(24, 25),
                count,
                extension: extended.then(|| word.f(32, 48) as u16),
            }
        } else {
            Token::WaveStart {
                location: self.place(7, 4, 15),
                queue: 0,
                pipe: Pipe { pipe: word.small(20, 22), me: word.small(22, 23) },
                dispatcher: 0,
                count,
                extension: extended.then(|| word.f(32, 40) as u16),
            }
        }
    }

    fn wave_end(&self) -> Token {
        let word = self.word;
        if self.is_gfx1250() && word.low(5) == 0b10101 {
            word.f(0, 8);
            return Token::Leftover { kind: Leftover::WaveEnd, data: word.f(8, 20) };
        }
        if self.is_gfx1250() {
            word.f(0, 10);
            return Token::WaveEnd { location: self.place(10, 4, 17) };
        }
        word.f(0, 8);
        Token::WaveEnd { location: self.place(8, if self.is_old() { 3 } else { 4 }, 15) }
    }

    fn inst(&self) -> Token {
        let word = self.word;
        match self.layout {
            Layout::Gfx10 | Layout::Gfx11 => {
                word.f(0, 7);
                let code = word.f(13, 20) as u16;
                Token::Inst { odd: word.bit(3), half: word.bit(7), slot: word.small(8, 13), code }
            }
            Layout::Gfx12 => {
                word.f(0, 6);
                let code = word.f(12, 20) as u16;
                Token::Inst { odd: false, half: word.bit(6), slot: word.small(7, 12), code }
            }
            Layout::Gfx1250 if word.low(4) == 0b1010 => {
                word.f(0, 6);
                Token::Leftover { kind: Leftover::Inst, data: word.f(6, 20) }
            }
            Layout::Gfx1250 => {
                word.f(0, 6);
                let code = word.f(12, 21) as u16;
                Token::Inst { odd: false, half: word.bit(6), slot: word.small(7, 12), code }
            }
        }
    }

    fn shader_data(&self, short: bool) -> Token {
        let word = self.word;
        if self.is_old() {
            word.f(0, 8);
            let (location, flags) = (self.place(8, 3, 15), word.small(14, 15));
            return if short {
                Token::ShaderDataShort { location, flags, data: word.small(20, 28) }
            } else {
                Token::ShaderData { location, flags, data: word.f(20, 52) as u32 }
            };
        }
        match word.low(7) {
            0b000_0110 | 0b100_0110 => {
                word.f(0, 10);
                let location = self.place(10, 4, 17);
                if short {
                    Token::ShaderDataShort { location, flags: word.small(30, 32), data: word.small(22, 30) }
                } else {
                    Token::ShaderData { location, flags: word.small(54, 56), data: word.f(22, 54) as u32 }
                }
            }
            _ if short => {
                word.f(0, 8);
                Token::Leftover { kind: Leftover::ShaderDataShort, data: word.f(8, 28) }
            }
            _ => {
                word.f(0, 8);
                Token::Leftover { kind: Leftover::ShaderData, data: word.f(8, 52) }
            }
        }
    }
}

const fn real_time(sample: bool) -> Stamp {
    if sample { Stamp::RealTime } else { Stamp::Elapsed }
}
