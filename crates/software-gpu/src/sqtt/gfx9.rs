//! Tokens of the gfx9 stream as typed values, and their bits.
//!
//! Units of 16 bits, kind in bits 3:0 (ROCm/rocm-systems, projects/rocprof-trace-decoder `gfx9/gfx9token.h`). Every
//! token but MISC carries one bit of time, MISC eight, in units of four clocks.

use super::bits::{BitWriter, Field, assemble, field};

/// Where a wave sits in its shader engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Shader array.
    pub sh: u8,
    /// Compute unit.
    pub cu: u8,
    /// Wave slot.
    pub slot: u8,
    /// SIMD.
    pub simd: u8,
}

/// The queue a token belongs to. The ME is stored plus one, modulo four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// Micro-engine.
    pub me: u8,
    /// Pipe of it.
    pub pipe: u8,
}

/// One token without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Time, and what happens to the trace itself.
    Misc {
        /// Shader array.
        sh: u8,
        /// See [`misc`].
        kind: u8,
    },
    /// The absolute clock.
    Time {
        /// Cycles, 48 bits.
        clock: u64,
    },
    /// A register write other than [`Token::RegCs`].
    Reg {
        /// Whose.
        pipe: Pipe,
        /// Bit 9, whose meaning is not public; captures have it in a few tokens.
        mark: bool,
        /// Register space.
        kind: u8,
        /// Whether the write took place.
        valid: bool,
        /// Number in its space.
        register: u16,
        /// What was written.
        data: u32,
    },
    /// A wave begins.
    WaveStart {
        /// Where.
        place: Place,
        /// Whose.
        pipe: Pipe,
        /// Threads, or beyond 64 a context switch.
        lanes: u8,
        /// Number of the work-group, low bits.
        group: u8,
    },
    /// A wave was given its resources.
    WaveAlloc {
        /// Where.
        place: Place,
    },
    /// A compute register written by software.
    RegCs {
        /// Whose.
        pipe: Pipe,
        /// Number, from COMPUTE_DISPATCH_INITIATOR on.
        register: u8,
        /// What was written.
        data: u32,
        /// Whether the hardware queue wrote it: REG_CS_PRIV.
        private: bool,
    },
    /// A wave ends.
    WaveEnd {
        /// Where.
        place: Place,
    },
    /// EVENT, EVENT_CS, EVENT_GFX1.
    Event {
        /// Which of the three, 0 to 2.
        kind: u8,
        /// The bits behind the time, whose meaning is not public.
        data: u16,
    },
    /// What the instruction was that a wave issued before.
    Inst {
        /// SIMD.
        simd: u8,
        /// Wave slot.
        slot: u8,
        /// What it was.
        code: u8,
    },
    /// Where a wave goes on.
    InstPc {
        /// SIMD.
        simd: u8,
        /// Wave slot.
        slot: u8,
        /// Whether the address is not valid.
        error: bool,
        /// Address, a multiple of four.
        pc: u64,
    },
    /// A word that a shader wrote.
    ShaderData {
        /// Where.
        place: Place,
        /// The word.
        data: u32,
    },
    /// What the waves of a SIMD do.
    Issue {
        /// SIMD.
        simd: u8,
        /// By wave slot, see [`issue`].
        slots: [u8; 10],
    },
    /// Performance counters of a compute unit.
    Perf {
        /// Shader array.
        sh: u8,
        /// Compute unit.
        cu: u8,
        /// Which four counters.
        bank: u8,
        /// Their values, 13 bits each.
        counters: [u16; 4],
    },
}

/// MISC kinds.
pub mod misc {
    /// Time alone.
    pub const TIME: u8 = 0;
    /// A TIME token with the absolute clock follows.
    pub const TIME_RESET: u8 = 1;
    /// Tokens were lost.
    pub const LOST: u8 = 2;
}

/// What ISSUE says of a slot.
pub mod issue {
    /// Nothing.
    pub const NONE: u8 = 0;
    /// The wave is ready but does not get its unit.
    pub const STALLED: u8 = 1;
    /// An instruction was issued.
    pub const ISSUED: u8 = 2;
    /// An instruction that needs no unit was done.
    pub const IMMEDIATE: u8 = 3;
}

/// The eight bytes that the capturing library puts before a stream (aqlprofile; ROCm/rocm-systems,
/// projects/rocprof-trace-decoder `trace_decoder_instrument.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftwareHeader {
    /// 0 or 0x11.
    pub legacy_version: u16,
    /// 4: MI200 and before; 5: MI300; 6: MI350.
    pub version: u8,
    /// SIMDs of the target.
    pub simd_mask: u8,
    /// Compute unit of the target.
    pub cu: u8,
    /// Shader array of the target.
    pub sa: u8,
    /// Shader engine.
    pub engine: u8,
    /// Whether the trace has two buffers.
    pub double_buffer: bool,
}

impl SoftwareHeader {
    /// Writes it.
    pub fn write(&self, out: &mut BitWriter) {
        let fields = [
            field(0, 13, self.legacy_version.into()),
            field(13, 3, self.version.into()),
            field(16, 4, self.simd_mask.into()),
            field(20, 5, self.cu.into()),
            field(25, 1, self.sa.into()),
            field(26, 6, self.engine.into()),
            field(32, 1, self.double_buffer.into()),
        ];
        out.push(assemble(&fields), 64);
    }
}

/// The longest step of a MISC token, in units of four clocks.
pub const MISC_STEPS: u64 = 255;
/// The longest step of every other token.
pub const TOKEN_STEPS: u64 = 1;

impl Pipe {
    fn reg_fields(self) -> [Field; 2] {
        [field(5, 2, self.pipe.into()), field(7, 2, (u128::from(self.me) + 1) & 3)]
    }
}

impl Place {
    fn fields(self) -> [Field; 4] {
        [
            field(5, 1, self.sh.into()),
            field(6, 4, self.cu.into()),
            field(10, 4, self.slot.into()),
            field(14, 2, self.simd.into()),
        ]
    }
}

impl Token {
    /// Bits of the token.
    pub const fn bits(&self) -> u32 {
        match self {
            Self::Misc { .. }
            | Self::WaveAlloc { .. }
            | Self::WaveEnd { .. }
            | Self::Event { .. }
            | Self::Inst { .. } => 16,
            Self::WaveStart { .. } | Self::Issue { .. } => 32,
            Self::RegCs { .. } | Self::ShaderData { .. } => 48,
            Self::Time { .. } | Self::Reg { .. } | Self::InstPc { .. } | Self::Perf { .. } => 64,
        }
    }

    const fn kind(&self) -> u128 {
        match self {
            Self::Misc { .. } => 0,
            Self::Time { .. } => 1,
            Self::Reg { .. } => 2,
            Self::WaveStart { .. } => 3,
            Self::WaveAlloc { .. } => 4,
            Self::RegCs { private: false, .. } => 5,
            Self::WaveEnd { .. } => 6,
            Self::Event { kind, .. } => 7 + *kind as u128,
            Self::Inst { .. } => 10,
            Self::InstPc { .. } => 11,
            Self::ShaderData { .. } => 12,
            Self::Issue { .. } => 13,
            Self::Perf { .. } => 14,
            Self::RegCs { private: true, .. } => 15,
        }
    }

    /// Writes the token, `steps` units of time after the one before.
    pub fn write(&self, steps: u64, out: &mut BitWriter) {
        let time = if matches!(self, Self::Misc { .. }) { 8 } else { 1 };
        let common = assemble(&[field(0, 4, self.kind()), field(4, time, steps.into())]);
        out.push(common | self.body(), self.bits());
    }

    fn body(&self) -> u128 {
        match *self {
            Self::Misc { sh, kind } => assemble(&[field(12, 1, sh.into()), field(13, 3, kind.into())]),
            Self::Time { clock } => assemble(&[field(16, 48, clock.into())]),
            Self::Reg { pipe, mark, kind, valid, register, data } => {
                let rest = [
                    field(9, 1, mark.into()),
                    field(10, 3, kind.into()),
                    field(15, 1, valid.into()),
                    field(16, 16, register.into()),
                    field(32, 32, data.into()),
                ];
                assemble(&pipe.reg_fields()) | assemble(&rest)
            }
            Self::WaveStart { place, pipe, lanes, group } => wave_start(place, pipe, lanes, group),
            Self::WaveAlloc { place } | Self::WaveEnd { place } => assemble(&place.fields()),
            Self::RegCs { pipe, register, data, .. } => {
                assemble(&pipe.reg_fields())
                    | assemble(&[field(9, 7, register.into()), field(16, 32, data.into())])
            }
            Self::Event { data, .. } => assemble(&[field(5, 11, data.into())]),
            Self::Inst { simd, slot, code } => {
                assemble(&[field(5, 4, slot.into()), field(9, 2, simd.into()), field(11, 5, code.into())])
            }
            Self::InstPc { simd, slot, error, pc } => assemble(&[
                field(5, 4, slot.into()),
                field(9, 2, simd.into()),
                field(15, 1, error.into()),
                field(16, 48, (pc / 4).into()),
            ]),
            Self::ShaderData { place, data } => {
                assemble(&place.fields()) | assemble(&[field(16, 32, data.into())])
            }
            Self::Issue { simd, slots } => assemble(&[field(5, 2, simd.into())]) | row(8, 2, slots),
            Self::Perf { sh, cu, bank, counters } => {
                let place = [field(5, 1, sh.into()), field(6, 4, cu.into()), field(10, 2, bank.into())];
                assemble(&place) | row(12, 13, counters)
            }
        }
    }
}

fn wave_start(place: Place, pipe: Pipe, lanes: u8, group: u8) -> u128 {
    let rest = [
        field(16, 2, pipe.pipe.into()),
        field(18, 2, pipe.me.into()),
        field(22, 7, lanes.into()),
        field(29, 3, group.into()),
    ];
    assemble(&place.fields()) | assemble(&rest)
}

/// Fields of `bits` bits each, one behind the other from bit `first` on.
fn row<const COUNT: usize>(first: u32, bits: u32, values: [impl Into<u128>; COUNT]) -> u128 {
    let fields = (0..).zip(values).map(|(index, value)| field(first + bits * index, bits, value.into()));
    fields.fold(0, |all, field| all | assemble(&[field]))
}
