//! Tokens of the gfx9 stream as typed values, and their bits.
//!
//! Units of 16 bits, kind in bits 3:0 (ROCm/rocm-systems, projects/rocprof-trace-decoder `gfx9/gfx9token.h`). Every
//! token but MISC carries one bit of time, MISC eight, in units of four clocks.

use super::bits::{BitWriter, Field, assemble, field};

/// A wave's place and what comes with its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sh: u8,
    pub(crate) cu: u8,
    pub(crate) slot: u8,
    pub(crate) simd: u8,
}

/// The queue a token belongs to. The ME is stored plus one, modulo four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pipe {
    pub(crate) me: u8,
    pub(crate) pipe: u8,
}

/// One token without its time.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "waves issue no instructions yet; tests rebuild captures with all kinds")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Misc {
        sh: u8,
        kind: u8,
    },
    Time {
        clock: u64,
    },
    /// `mark` is bit 9, whose meaning is not public; captures have it in a few tokens.
    Reg {
        pipe: Pipe,
        mark: bool,
        kind: u8,
        valid: bool,
        register: u16,
        data: u32,
    },
    WaveStart {
        place: Place,
        pipe: Pipe,
        lanes: u8,
        group: u8,
    },
    WaveAlloc {
        place: Place,
    },
    WaveEnd {
        place: Place,
    },
    RegCs {
        pipe: Pipe,
        register: u8,
        data: u32,
        private: bool,
    },
    Inst {
        simd: u8,
        slot: u8,
        code: u8,
    },
    InstPc {
        simd: u8,
        slot: u8,
        error: bool,
        pc: u64,
    },
    ShaderData {
        place: Place,
        data: u32,
    },
    Issue {
        simd: u8,
        slots: [u8; 10],
    },
    Perf {
        sh: u8,
        cu: u8,
        bank: u8,
        counters: [u16; 4],
    },
}

/// MISC kinds.
pub(crate) mod misc {
    pub(crate) const TIME: u8 = 0;
    pub(crate) const TIME_RESET: u8 = 1;
}

/// The longest step of a MISC token, and the step of every other one, in units of four clocks.
pub(crate) const MISC_STEPS: u64 = 255;
pub(crate) const TOKEN_STEPS: u64 = 1;

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
    pub(crate) const fn len(&self) -> u32 {
        match self {
            Self::Misc { .. } | Self::WaveAlloc { .. } | Self::WaveEnd { .. } | Self::Inst { .. } => 16,
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
            Self::Inst { .. } => 10,
            Self::InstPc { .. } => 11,
            Self::ShaderData { .. } => 12,
            Self::Issue { .. } => 13,
            Self::Perf { .. } => 14,
            Self::RegCs { private: true, .. } => 15,
        }
    }

    /// Writes the token, `steps` units of time after the one before.
    pub(crate) fn write(&self, steps: u64, out: &mut BitWriter) {
        let time = if matches!(self, Self::Misc { .. }) { 8 } else { 1 };
        let common = assemble(&[field(0, 4, self.kind()), field(4, time, steps.into())]);
        out.push(common | self.body(), self.len());
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
            Self::WaveStart { place, pipe, lanes, group } => {
                let rest = [
                    field(16, 2, pipe.pipe.into()),
                    field(18, 2, pipe.me.into()),
                    field(22, 7, lanes.into()),
                    field(29, 3, group.into()),
                ];
                assemble(&place.fields()) | assemble(&rest)
            }
            Self::WaveAlloc { place } | Self::WaveEnd { place } => assemble(&place.fields()),
            Self::RegCs { pipe, register, data, .. } => {
                assemble(&pipe.reg_fields())
                    | assemble(&[field(9, 7, register.into()), field(16, 32, data.into())])
            }
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
            Self::Issue { simd, slots } => {
                let marks =
                    (0..).zip(slots).map(|(slot, mark)| assemble(&[field(8 + 2 * slot, 2, mark.into())]));
                assemble(&[field(5, 2, simd.into())]) | marks.fold(0, |all, mark| all | mark)
            }
            Self::Perf { sh, cu, bank, counters } => {
                let values = (0..)
                    .zip(counters)
                    .map(|(index, value)| assemble(&[field(12 + 13 * index, 13, value.into())]));
                let place = [field(5, 1, sh.into()), field(6, 4, cu.into()), field(10, 2, bank.into())];
                assemble(&place) | values.fold(0, |all, value| all | value)
            }
        }
    }
}
