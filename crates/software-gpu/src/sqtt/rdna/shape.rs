//! Patterns, lengths and time fields: one row per kind.

use super::{Layout, Leftover, Token};

/// What is common to all tokens of a kind.
pub(super) struct Shape {
    /// The lowest bits.
    pub(super) pattern: u128,
    /// Length.
    pub(super) bits: u32,
    /// Place and width of the time field.
    pub(super) time: (u32, u32),
}

const fn shape(pattern: u128, bits: u32, time: (u32, u32)) -> Shape {
    Shape { pattern, bits, time }
}

const UNTIMED: (u32, u32) = (0, 0);

impl Token {
    pub(super) fn shape(&self, layout: Layout) -> Shape {
        match self {
            Self::Nop => shape(0b0000, layout.pick(4, 4, 4, 8), UNTIMED),
            Self::Time { alternate: false } => shape(0b1000, 8, (4, 4)),
            Self::Time { alternate: true } => shape(0b1110, 8, (4, 4)),
            Self::MediumTime => shape(0b1010_0110, 16, (8, 8)),
            Self::Timestamp { .. } => shape(0b000_0001, layout.pick(64, 48, 64, 64), UNTIMED),
            Self::Header(_) => shape(0b001_0001, 64, UNTIMED),
            Self::NewPc { .. } => shape(0b010_0001, layout.pick(64, 64, 72, 72), (8, 3)),
            Self::UtilCounter { .. } => shape(0b011_0001, layout.pick(64, 48, 48, 48), (7, 2)),
            Self::Misc { .. } => shape(0b101_0001, 24, layout.pick((7, 9), (7, 9), (7, 9), (7, 3))),
            Self::RegInit { .. } => shape(0b111_0001, 64, (7, 3)),
            Self::Event { .. } => shape(0b0110_0001, 24, (8, 3)),
            Self::EventSync { .. } => shape(0b1110_0001, 32, (8, 3)),
            Self::Reg { .. } => shape(0b1001, 64, (4, 3)),
            Self::LdsConfig { .. } => shape(0b0010_0110, 24, (8, 2)),
            Self::Unknown { .. } => shape(0, layout.pick(4, 4, 4, 8), UNTIMED),
            Self::Leftover { kind, .. } => kind.shape(),
            Self::AluExec { .. } => shape(0b1110, 8, (4, 2)),
            Self::VmemExec { .. } => shape(0b1111, 8, (4, 2)),
            Self::ExecPopcount1 { .. } => shape(0b110_0110, 24, (7, 3)),
            Self::ExecPopcount3 { .. } => shape(0b01_0110, 48, (6, 3)),
            _ => self.wave_shape(layout),
        }
    }

    /// Kinds that tell of waves and their instructions.
    fn wave_shape(&self, layout: Layout) -> Shape {
        let old = matches!(layout, Layout::Gfx10 | Layout::Gfx11);
        let gfx1250 = matches!(layout, Layout::Gfx1250);
        match self {
            Self::Inst { .. } if gfx1250 => shape(0b0010, 24, (4, 2)),
            Self::Inst { .. } => shape(0b010, 20, layout.pick((4, 3), (4, 3), (3, 3), (4, 2))),
            Self::ValuRecent { .. } => shape(0b011, 8, UNTIMED),
            Self::ValuInst { .. } => shape(0b011, 12, (3, 3)),
            Self::ImmOne { .. } if gfx1250 => shape(0b1101, 16, (7, 3)),
            Self::ImmOne { .. } => shape(0b1101, 12, (4, 3)),
            Self::Immediate { .. } => shape(0b00100, 24, (5, 3)),
            Self::WaveAlloc { .. } => shape(0b00101, layout.pick(20, 20, 24, 24), (5, 3)),
            Self::ShaderData { .. } if old => shape(0b00110, 52, (5, 3)),
            Self::ShaderData { .. } => shape(0b000_0110, 56, (7, 3)),
            Self::ShaderDataShort { .. } if old => shape(0b10110, 28, (5, 3)),
            Self::ShaderDataShort { .. } => shape(0b100_0110, 32, (7, 3)),
            Self::WaveStart { extension: None, .. } => shape(0b01100, 32, (5, 2)),
            Self::WaveStart { .. } => shape(0b11100, layout.pick(48, 48, 40, 40), (5, 2)),
            Self::WaveReady { .. } => shape(0b10100, 24, (5, 3)),
            Self::WaveEnd { .. } if gfx1250 => shape(0b100_0001, 24, (7, 3)),
            Self::WaveEnd { .. } => shape(0b10101, 20, (5, 3)),
            _ => shape(0, 8, UNTIMED),
        }
    }
}

impl Leftover {
    const fn shape(self) -> Shape {
        match self {
            Self::ShaderData => shape(0b010_0110, 52, (5, 3)),
            Self::ShaderDataShort => shape(0b11_0110, 28, (5, 3)),
            Self::WaveEnd => shape(0b10101, 20, (5, 3)),
            Self::Inst => shape(0b1010, 20, (3, 3)),
        }
    }
}
