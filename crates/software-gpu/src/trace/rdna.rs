//! Tokens of the gfx10, gfx11 and gfx12 streams as typed values, and their bits.
//!
//! Variable-length tokens in units of four bits; a pattern in the lowest bits says the kind, a few bits behind it the
//! time since the token before, in shader clocks (ROCm/rocm-systems, projects/rocprof-trace-decoder `gfx10/`,
//! `gfx11/`, `gfx12/`; the two execution tokens and what MISC looks like in captures: tinygrad/tinygrad
//! `tinygrad/renderer/amd/sqtt.py`).

use super::bits::{BitWriter, Field, assemble, field};
use super::event::Location;

/// Which layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Gfx10,
    Gfx11,
    Gfx12,
}

/// The queue a token belongs to.
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
    Nop,
    /// Time alone: 4 to 19 clocks.
    Time,
    /// An increment, or a sample of the real-time clock.
    Timestamp {
        real_time: bool,
        lost: bool,
        tag: bool,
        value: u64,
    },
    Header(Header),
    Misc {
        flags: u8,
    },
    Reg {
        pipe: Pipe,
        rdp: bool,
        context: u8,
        compute: bool,
        register: u16,
        data: u32,
    },
    RegInit {
        vmid: u8,
        pipe: Pipe,
        kind: u8,
        data: u32,
        sync: u16,
    },
    Event {
        bottom: bool,
        kind: u8,
        pipe: Pipe,
        id: u8,
    },
    EventSync {
        data: u32,
    },
    WaveAlloc {
        data: u16,
    },
    /// `extension`: what WAVE_START_EXT carries behind it.
    WaveStart {
        location: Location,
        queue: u8,
        pipe: Pipe,
        dispatcher: u8,
        count: u8,
        extension: Option<u16>,
    },
    WaveReady {
        slots: u16,
    },
    WaveEnd {
        location: Location,
    },
    Inst {
        odd: bool,
        half: bool,
        slot: u8,
        code: u8,
    },
    ValuInst {
        half: bool,
        slot: u8,
    },
    ImmOne {
        slot: u8,
    },
    Immediate {
        slots: u16,
    },
    AluExec {
        kind: u8,
    },
    VmemExec {
        kind: u8,
    },
    NewPc {
        slot: u8,
        pc: u64,
        error: bool,
    },
    ShaderData {
        location: Location,
        flags: u8,
        data: u32,
    },
    ShaderDataShort {
        location: Location,
        flags: u8,
        data: u8,
    },
    UtilCounter {
        data: u64,
    },
}

/// The first token: what was traced how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// 1 on gfx10, 3 on gfx11, 4 on gfx12.
    pub(crate) version: u8,
    pub(crate) simd: u8,
    pub(crate) wgp: u8,
    pub(crate) sa: u8,
    /// Bits from 20 on: chip constants and, on gfx12, the trace's settings.
    pub(crate) chip: u64,
}

/// Pattern and its width, length, place and width of the time field.
struct Shape {
    pattern: u128,
    len: u32,
    time: (u32, u32),
}

const fn shape(pattern: u128, len: u32, time: (u32, u32)) -> Shape {
    Shape { pattern, len, time }
}

const UNTIMED: (u32, u32) = (0, 0);

impl Layout {
    const fn pick(self, gfx10: u32, gfx11: u32, gfx12: u32) -> u32 {
        match self {
            Self::Gfx10 => gfx10,
            Self::Gfx11 => gfx11,
            Self::Gfx12 => gfx12,
        }
    }

    const fn is_gfx12(self) -> bool {
        matches!(self, Self::Gfx12)
    }
}

impl Token {
    /// The longest step of time that the token carries itself.
    pub(crate) fn max_step(&self, layout: Layout) -> u64 {
        (1 << self.shape(layout).time.1) - 1
    }

    fn shape(&self, layout: Layout) -> Shape {
        match self {
            Self::Nop => shape(0b0000, 4, UNTIMED),
            Self::Time => shape(0b1000, 8, (4, 4)),
            Self::Timestamp { .. } => shape(0b000_0001, layout.pick(64, 48, 64), UNTIMED),
            Self::Header(_) => shape(0b001_0001, 64, UNTIMED),
            Self::NewPc { .. } => shape(0b010_0001, layout.pick(64, 64, 72), (8, 3)),
            Self::UtilCounter { .. } => shape(0b011_0001, layout.pick(64, 48, 48), (7, 2)),
            Self::Misc { .. } => shape(0b101_0001, 24, (7, 9)),
            Self::RegInit { .. } => shape(0b111_0001, 64, (7, 3)),
            Self::Event { .. } => shape(0b0110_0001, 24, (8, 3)),
            Self::EventSync { .. } => shape(0b1110_0001, 32, (8, 3)),
            Self::Inst { .. } => shape(0b010, 20, (layout.pick(4, 4, 3), 3)),
            Self::ValuInst { .. } => shape(0b011, 12, (3, 3)),
            Self::ImmOne { .. } => shape(0b1101, 12, (4, 3)),
            Self::Reg { .. } => shape(0b1001, 64, (4, 3)),
            Self::Immediate { .. } => shape(0b00100, 24, (5, 3)),
            Self::WaveAlloc { .. } => shape(0b00101, layout.pick(20, 20, 24), (5, 3)),
            Self::ShaderData { .. } if layout.is_gfx12() => shape(0b000_0110, 56, (7, 3)),
            Self::ShaderData { .. } => shape(0b00110, 52, (5, 3)),
            Self::ShaderDataShort { .. } if layout.is_gfx12() => shape(0b100_0110, 32, (7, 3)),
            Self::ShaderDataShort { .. } => shape(0b10110, 28, (5, 3)),
            Self::WaveStart { extension: None, .. } => shape(0b01100, 32, (5, 2)),
            Self::WaveStart { .. } => shape(0b11100, layout.pick(48, 48, 40), (5, 2)),
            Self::WaveReady { .. } => shape(0b10100, 24, (5, 3)),
            Self::WaveEnd { .. } => shape(0b10101, 20, (5, 3)),
            Self::AluExec { .. } => shape(0b1110, 8, (4, 2)),
            Self::VmemExec { .. } => shape(0b1111, 8, (4, 2)),
        }
    }

    /// Writes the token, `step` clocks after the one before (for [`Token::Time`] four less).
    pub(crate) fn write(&self, layout: Layout, step: u64, out: &mut BitWriter) {
        let Shape { pattern, len, time: (at, bits) } = self.shape(layout);
        out.push(pattern | assemble(&[field(at, bits, step.into())]) | self.body(layout), len);
    }

    fn body(&self, layout: Layout) -> u128 {
        match *self {
            Self::Nop | Self::Time => 0,
            Self::Timestamp { real_time, lost, tag, value } => timestamp(layout, real_time, lost, tag, value),
            Self::Header(header) => header.body(),
            Self::Misc { flags } => assemble(&[field(16, 8, flags.into())]),
            Self::Reg { .. } | Self::RegInit { .. } | Self::Event { .. } => self.register_body(),
            Self::EventSync { data } => assemble(&[field(11, 21, data.into())]),
            Self::WaveAlloc { data } => assemble(&[field(8, layout.pick(12, 12, 16), data.into())]),
            Self::WaveStart { .. } | Self::WaveEnd { .. } => self.wave_body(layout),
            Self::ShaderData { .. } | Self::ShaderDataShort { .. } => self.data_body(layout),
            Self::UtilCounter { data } => assemble(&[field(9, layout.pick(55, 39, 39), data.into())]),
            _ => self.instruction_body(layout),
        }
    }

    fn register_body(&self) -> u128 {
        match *self {
            Self::Reg { pipe, rdp, context, compute, register, data } => assemble(&[
                field(7, 2, pipe.pipe.into()),
                field(9, 2, pipe.me.into()),
                field(11, 1, rdp.into()),
                field(12, 3, context.into()),
                field(15, 1, compute.into()),
                field(16, 16, register.into()),
                field(32, 32, data.into()),
            ]),
            Self::RegInit { vmid, pipe, kind, data, sync } => assemble(&[
                field(10, 4, vmid.into()),
                field(14, 2, pipe.pipe.into()),
                field(16, 2, pipe.me.into()),
                field(18, 2, kind.into()),
                field(20, 32, data.into()),
                field(52, 12, sync.into()),
            ]),
            Self::Event { bottom, kind, pipe, id } => assemble(&[
                field(11, 1, bottom.into()),
                field(12, 2, kind.into()),
                field(14, 2, pipe.pipe.into()),
                field(16, 2, pipe.me.into()),
                field(18, 6, id.into()),
            ]),
            _ => 0,
        }
    }

    fn wave_body(&self, layout: Layout) -> u128 {
        match *self {
            Self::WaveStart { location, queue, pipe, dispatcher, count, extension } => {
                let rest = if layout.is_gfx12() {
                    [
                        field(18, 0, 0),
                        field(20, 2, pipe.pipe.into()),
                        field(22, 1, pipe.me.into()),
                        field(23, 2, dispatcher.into()),
                    ]
                } else {
                    [
                        field(18, 3, queue.into()),
                        field(21, 2, pipe.pipe.into()),
                        field(23, 1, pipe.me.into()),
                        field(24, 1, dispatcher.into()),
                    ]
                };
                let slot = layout.pick(13, 13, 15);
                place(&location, 7, layout.pick(3, 3, 5), slot)
                    | assemble(&rest)
                    | assemble(&[field(25, 7, count.into()), field(32, 16, extension.unwrap_or(0).into())])
            }
            Self::WaveEnd { location } => place(&location, 8, 4, 15),
            _ => 0,
        }
    }

    fn data_body(&self, layout: Layout) -> u128 {
        let body = |location: &Location, flags: u8, data: u32, bits: u32| {
            if layout.is_gfx12() {
                let rest = [field(22, bits, data.into()), field(22 + bits, 2, flags.into())];
                place(location, 10, 4, 17) | assemble(&rest)
            } else {
                // Bit 14: invalid.
                let rest = [field(14, 1, flags.into()), field(20, bits, data.into())];
                place(location, 8, 3, 15) | assemble(&rest)
            }
        };
        match self {
            Self::ShaderData { location, flags, data } => body(location, *flags, *data, 32),
            Self::ShaderDataShort { location, flags, data } => body(location, *flags, (*data).into(), 8),
            _ => 0,
        }
    }

    fn instruction_body(&self, layout: Layout) -> u128 {
        match *self {
            Self::Inst { odd, half, slot, code } if layout.is_gfx12() => {
                let _ = odd; // a time bit there
                assemble(&[field(6, 1, half.into()), field(7, 5, slot.into()), field(12, 8, code.into())])
            }
            Self::Inst { odd, half, slot, code } => assemble(&[
                field(3, 1, odd.into()),
                field(7, 1, half.into()),
                field(8, 5, slot.into()),
                field(13, 7, code.into()),
            ]),
            Self::ValuInst { half, slot } => assemble(&[field(6, 1, half.into()), field(7, 5, slot.into())]),
            Self::ImmOne { slot } => assemble(&[field(7, 5, slot.into())]),
            Self::Immediate { slots } | Self::WaveReady { slots } => assemble(&[field(8, 16, slots.into())]),
            Self::AluExec { kind } | Self::VmemExec { kind } => assemble(&[field(6, 2, kind.into())]),
            Self::NewPc { slot, pc, error } => {
                let width = layout.pick(46, 46, 55);
                let rest = [field(16, width, (pc / 4).into()), field(16 + width, 1, error.into())];
                assemble(&[field(11, 5, slot.into())]) | assemble(&rest)
            }
            _ => 0,
        }
    }
}

impl Header {
    fn body(&self) -> u128 {
        assemble(&[
            field(7, 6, self.version.into()),
            field(13, 2, self.simd.into()),
            field(15, 3, self.wgp.into()),
            field(19, 1, self.sa.into()),
            field(20, 44, self.chip.into()),
        ])
    }
}

fn timestamp(layout: Layout, real_time: bool, lost: bool, tag: bool, value: u64) -> u128 {
    let fields: &[Field] = &match layout {
        // Type 1 adds, type 2 samples.
        Layout::Gfx10 => [
            field(14, 2, 1 + u128::from(real_time)),
            field(16, 48, value.into()),
            field(0, 0, 0),
            field(0, 0, 0),
        ],
        Layout::Gfx11 => [
            field(8, 1, lost.into()),
            field(9, 1, real_time.into()),
            field(10, 1, tag.into()),
            field(12, 36, value.into()),
        ],
        Layout::Gfx12 => [
            field(7, 1, real_time.into()),
            field(8, 1, lost.into()),
            field(9, 1, tag.into()),
            field(12, 52, value.into()),
        ],
    };
    assemble(fields)
}

/// SA, SIMD and WGP from bit `at` on, `wgp` bits of the latter; the slot at `slot`.
fn place(location: &Location, at: u32, wgp: u32, slot: u32) -> u128 {
    assemble(&[
        field(at, 1, location.sa.into()),
        field(at + 1, 2, location.simd.into()),
        field(at + 3, wgp, location.unit.into()),
        field(slot, 5, location.slot.into()),
    ])
}
