//! Tables generated from `tables/*.json` by `cargo xtask codegen`, and the short constructors they use.

#[rustfmt::skip]
mod blocks;
#[rustfmt::skip]
mod counter_rows;
#[rustfmt::skip]
mod fixed;

pub use fixed::RegisterName;

use crate::block::{Attributes, Block, BlockId, CounterRegisters, Select};
use crate::ip::Register;
use crate::target::{Generation, Target};

/// The chip's blocks, ascending by id.
pub(crate) const fn blocks(target: Target) -> &'static [Block] {
    match target {
        Target::Gfx906 => blocks::GFX906,
        Target::Gfx908 => blocks::GFX908,
        Target::Gfx90a => blocks::GFX90A,
        Target::Gfx942 => blocks::GFX942,
        Target::Gfx950 => blocks::GFX950,
        Target::Gfx1030 => blocks::GFX1030,
        Target::Gfx1100 => blocks::GFX1100,
        Target::Gfx1200 => blocks::GFX1200,
        Target::Gfx1201 => blocks::GFX1201,
    }
}

/// Registers outside the blocks, indexed by `RegisterName`.
pub(crate) const fn fixed(generation: Generation) -> &'static [Option<Register>] {
    match generation {
        Generation::Gfx9 => &fixed::GFX9,
        Generation::Gfx10 => &fixed::GFX10,
        Generation::Gfx11 => &fixed::GFX11,
        Generation::Gfx12 => &fixed::GFX12,
    }
}

const fn gc(segment: u8, offset: u32) -> Register {
    Register::gc(segment, offset)
}

const fn hub(segment: u8, offset: u32) -> Register {
    Register::athub(segment, offset)
}

const fn row(
    select: Register,
    control: Option<Register>,
    lo: Option<Register>,
    hi: Option<Register>,
) -> CounterRegisters {
    CounterRegisters { select, control, lo, hi }
}

#[expect(clippy::too_many_arguments, reason = "one call is one line of a generated table")]
const fn block(
    id: u32,
    name: &'static str,
    counter_group: u32,
    instances: u32,
    counters: u32,
    max_event: u32,
    attributes: u32,
    select_base: u32,
    event_mask: u32,
    registers: &'static [CounterRegisters],
) -> Block {
    Block {
        id: BlockId(id),
        name,
        counter_group,
        instances,
        counters,
        max_event,
        attributes: Attributes(attributes),
        select: Select { base: select_base, event_mask },
        registers,
    }
}
