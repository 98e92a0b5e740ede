//! Fields: where each stands.

use super::super::bits::{Field, assemble, field};
use super::{Header, Layout, Leftover, Location, Stamp, Token};

impl Token {
    /// The token's fields but for pattern and time.
    pub(super) fn body(&self, layout: Layout, step: u64) -> u128 {
        match *self {
            Self::Nop | Self::Time { .. } | Self::MediumTime => 0,
            Self::Timestamp { stamp, lost, tag, value } => timestamp(layout, stamp, lost, tag, value),
            Self::Header(header) => header.body(layout),
            Self::Misc { flags, cluster: None } => assemble(&[field(16, 8, flags.into())]),
            Self::Misc { flags, cluster: Some((first, last, number)) } => assemble(&[
                field(10, 7, flags.into()),
                field(17, 1, first.into()),
                field(18, 1, last.into()),
                field(19, 4, number.into()),
            ]),
            Self::Reg { .. } | Self::RegInit { .. } | Self::Event { .. } => self.register_body(),
            Self::EventSync { data } => assemble(&[field(11, 21, data.into())]),
            Self::WaveAlloc { data } => assemble(&[field(8, layout.pick(12, 12, 16, 16), data.into())]),
            Self::Continuation { byte } => byte.into(),
            Self::WaveStart { .. } | Self::WaveEnd { .. } => self.wave_body(layout),
            Self::ShaderData { .. } | Self::ShaderDataShort { .. } => self.data_body(layout),
            Self::UtilCounter { data } => assemble(&[field(9, layout.pick(55, 39, 39, 39), data.into())]),
            Self::ExecPopcount1 { data } => assemble(&[field(10, 14, data.into())]),
            Self::ExecPopcount3 { data } => assemble(&[field(9, 39, data.into())]),
            Self::LdsConfig { data } => assemble(&[field(10, 14, data.into())]),
            Self::Unknown { bits } => bits.into(),
            Self::Leftover { kind, data } => kind.body(data),
            _ => self.instruction_body(layout, step),
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
        let old = matches!(layout, Layout::Gfx10 | Layout::Gfx11);
        match *self {
            Self::WaveStart { location, queue, pipe, dispatcher, count, extension } => {
                let common = [field(25, 7, count.into()), field(32, 16, extension.unwrap_or(0).into())];
                let place = if old { place(&location, 7, 3, 13) } else { place(&location, 7, 5, 15) };
                let owner: &[Field] = if old {
                    &[
                        field(18, 3, queue.into()),
                        field(21, 2, pipe.pipe.into()),
                        field(23, 1, pipe.me.into()),
                        field(24, 1, dispatcher.into()),
                    ]
                } else {
                    &[
                        field(20, 2, pipe.pipe.into()),
                        field(22, 1, pipe.me.into()),
                        field(23, 2, dispatcher.into()),
                    ]
                };
                place | assemble(owner) | assemble(&common)
            }
            Self::WaveEnd { location } if layout == Layout::Gfx1250 => place(&location, 10, 4, 17),
            Self::WaveEnd { location } => place(&location, 8, 4, 15),
            _ => 0,
        }
    }

    fn data_body(&self, layout: Layout) -> u128 {
        let old = matches!(layout, Layout::Gfx10 | Layout::Gfx11);
        let body = |location: &Location, flags: u8, data: u32, bits: u32| {
            if old {
                // Bit 14: invalid.
                let rest = [field(14, 1, flags.into()), field(20, bits, data.into())];
                place(location, 8, 3, 15) | assemble(&rest)
            } else {
                let rest = [field(22, bits, data.into()), field(22 + bits, 2, flags.into())];
                place(location, 10, 4, 17) | assemble(&rest)
            }
        };
        match self {
            Self::ShaderData { location, flags, data } => body(location, *flags, *data, 32),
            Self::ShaderDataShort { location, flags, data } => body(location, *flags, (*data).into(), 8),
            _ => 0,
        }
    }

    fn instruction_body(&self, layout: Layout, step: u64) -> u128 {
        match *self {
            Self::Inst { odd, half, slot, code } => match layout {
                Layout::Gfx10 | Layout::Gfx11 => assemble(&[
                    field(3, 1, odd.into()),
                    field(7, 1, half.into()),
                    field(8, 5, slot.into()),
                    field(13, 7, code.into()),
                ]),
                Layout::Gfx12 | Layout::Gfx1250 => assemble(&[
                    field(6, 1, half.into()),
                    field(7, 5, slot.into()),
                    field(12, layout.pick(8, 8, 8, 9), code.into()),
                ]),
            },
            Self::ValuInst { half, slot } => assemble(&[field(6, 1, half.into()), field(7, 5, slot.into())]),
            Self::ValuRecent { odd, position } => {
                let selector = valu_selector(position, step);
                assemble(&[field(3, 1, odd.into()), field(4, 4, selector)])
            }
            Self::ImmOne { slot } => assemble(&[field(layout.pick(7, 7, 7, 10), 5, slot.into())]),
            Self::Immediate { slots } | Self::WaveReady { slots } => assemble(&[field(8, 16, slots.into())]),
            Self::AluExec { kind } | Self::VmemExec { kind } => assemble(&[field(6, 2, kind.into())]),
            Self::NewPc { slot, pc, error } => {
                let width = layout.pick(46, 46, 55, 55);
                let rest = [field(16, width, (pc / 4).into()), field(16 + width, 1, error.into())];
                assemble(&[field(11, 5, slot.into())]) | assemble(&rest)
            }
            _ => 0,
        }
    }
}

/// Place in the list and step in one: four steps for the first three places, two for the last two.
fn valu_selector(position: u8, step: u64) -> u128 {
    let first = if position < 3 { position * 4 } else { 6 + position * 2 };
    u128::from(first) + u128::from(step.saturating_sub(1))
}

impl Header {
    fn body(&self, layout: Layout) -> u128 {
        assemble(&[
            field(7, 6, self.version.into()),
            field(13, 2, self.simd.into()),
            field(15, layout.pick(3, 3, 3, 4), self.wgp.into()),
            field(19, 1, self.sa.into()),
            field(20, 44, self.chip.into()),
        ])
    }
}

impl Leftover {
    fn body(self, data: u64) -> u128 {
        match self {
            Self::ShaderData => assemble(&[field(8, 44, data.into())]),
            Self::ShaderDataShort => assemble(&[field(8, 20, data.into())]),
            Self::WaveEnd => assemble(&[field(8, 12, data.into())]),
            Self::Inst => assemble(&[field(6, 14, data.into())]),
        }
    }
}

fn timestamp(layout: Layout, stamp: Stamp, lost: bool, tag: bool, value: u64) -> u128 {
    let (lost, tag, real_time) = (lost.into(), tag.into(), u128::from(stamp == Stamp::RealTime));
    let kind = match stamp {
        Stamp::Elapsed => 1,
        Stamp::RealTime => 2,
        Stamp::Other(kind) => u128::from(kind),
    };
    match layout {
        Layout::Gfx10 => assemble(&[field(14, 2, kind), field(16, 48, value.into())]),
        Layout::Gfx11 => assemble(&[
            field(8, 1, lost),
            field(9, 1, real_time),
            field(10, 1, tag),
            field(12, 36, value.into()),
        ]),
        Layout::Gfx12 | Layout::Gfx1250 => assemble(&[
            field(7, 1, real_time),
            field(8, 1, lost),
            field(9, 1, tag),
            field(12, 52, value.into()),
        ]),
    }
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
