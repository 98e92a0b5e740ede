//! The timing model: how many cycles things take on each generation.
//!
//! Figures are rounded from captures of small kernels on gfx950, gfx1100 and gfx1201 (tinygrad/tinygrad
//! `extra/sqtt/examples`), memory latencies set to those of warm caches. What matters is that orders, counts and
//! proportions are plausible and repeatable; nothing here claims silicon's times.

use wavescope_isa::Generation;

/// Cycles of one generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Between two instructions of a wave at least; every time is a multiple of it.
    pub(super) grain: u32,
    /// Until the first instruction.
    pub(super) start: u32,
    /// A vector instruction that needs the result before it.
    pub(super) valu_result: u32,
    /// The same for scalar ones.
    pub(super) salu_result: u32,
    /// From a vector result to the memory unit that takes its address from it.
    pub(super) address: u32,
    /// After a branch that is taken, and that is not.
    pub(super) taken: u32,
    pub(super) falls: u32,
    /// After a jump to a register.
    pub(super) far: u32,
    /// Latencies. Loads vary by up to a half.
    pub(super) scalar_load: u32,
    pub(super) load: u32,
    pub(super) store: u32,
    pub(super) lds: u32,
    /// Whether stores are counted with loads, and scalar loads with LDS.
    pub(super) stores_are_loads: bool,
    pub(super) scalars_are_lds: bool,
}

const GFX9: Pace = Pace {
    grain: 4,
    start: 40,
    valu_result: 4,
    salu_result: 4,
    address: 8,
    taken: 32,
    falls: 4,
    far: 64,
    scalar_load: 200,
    load: 640,
    store: 320,
    lds: 64,
    stores_are_loads: true,
    scalars_are_lds: true,
};

const GFX10: Pace = Pace {
    grain: 1,
    start: 24,
    valu_result: 4,
    salu_result: 1,
    address: 16,
    taken: 20,
    falls: 3,
    far: 32,
    scalar_load: 160,
    load: 420,
    store: 320,
    lds: 32,
    stores_are_loads: false,
    scalars_are_lds: true,
};

const GFX12: Pace = Pace { salu_result: 8, scalar_load: 180, load: 480, scalars_are_lds: false, ..GFX10 };

impl Pace {
    pub(super) const fn of(generation: Generation) -> Self {
        match generation {
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => GFX9,
            Generation::Gfx10 | Generation::Gfx10_3 | Generation::Gfx11 | Generation::Gfx11_5 => GFX10,
            Generation::Gfx12 | Generation::Gfx1250 => GFX12,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_has_the_figures() {
        let text = include_str!("timing.md");
        let generations =
            [("gfx9", Generation::Gfx9), ("gfx10, gfx11", Generation::Gfx10), ("gfx12", Generation::Gfx12)];
        for (name, generation) in generations {
            let pace = Pace::of(generation);
            let figures = [
                pace.grain,
                pace.start,
                pace.valu_result,
                pace.salu_result,
                pace.address,
                pace.taken,
                pace.falls,
                pace.far,
                pace.scalar_load,
                pace.load,
                pace.store,
                pace.lds,
            ];
            let row = format!("| {name} | {} |\n", figures.map(|figure| figure.to_string()).join(" | "));
            assert!(text.contains(&row), "{row}");
        }
    }
}
