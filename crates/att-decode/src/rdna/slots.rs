//! The wave slots of the target, each a stack of waves.

use super::wave::{NO_WAVE, RdnaWave};

/// Wave slots of a SIMD.
pub(crate) const SLOTS: usize = 32;

/// Waves by slot. Memory of waves that left is used again.
#[derive(Debug)]
pub(crate) struct Slots {
    tops: [u32; SLOTS],
    waves: Vec<RdnaWave>,
    free: Vec<u32>,
}

impl Default for Slots {
    fn default() -> Self {
        Slots { tops: [NO_WAVE; SLOTS], waves: Vec::new(), free: Vec::new() }
    }
}

impl Slots {
    /// The wave on top of a slot.
    #[inline(always)]
    pub(crate) fn top(&mut self, slot: u8) -> Option<&mut RdnaWave> {
        self.waves.get_mut(self.tops[usize::from(slot) % SLOTS] as usize)
    }

    /// Puts a fresh wave on top of a slot.
    pub(crate) fn push(&mut self, slot: u8, time: i64) -> &mut RdnaWave {
        let index = match self.free.pop() {
            Some(index) => {
                self.waves[index as usize].reset(time);
                index
            }
            None => {
                self.waves.push(RdnaWave::new(time));
                self.waves.len() as u32 - 1
            }
        };
        let top = &mut self.tops[usize::from(slot) % SLOTS];
        let wave = &mut self.waves[index as usize];
        wave.below = std::mem::replace(top, index);
        wave
    }

    /// Takes the top wave off a slot; it stays readable through its index until the next push.
    pub(crate) fn pop(&mut self, slot: u8) -> Option<u32> {
        let top = &mut self.tops[usize::from(slot) % SLOTS];
        let index = *top;
        *top = self.waves.get(index as usize)?.below;
        self.free.push(index);
        Some(index)
    }

    /// Takes the lowest wave off a slot that holds more than `limit`; it stays readable until the next push.
    pub(crate) fn pop_lowest_above(&mut self, slot: u8, limit: u32) -> Option<u32> {
        let mut index = self.tops[usize::from(slot) % SLOTS];
        let mut above = None;
        let mut depth = 0;
        loop {
            let wave = self.waves.get(index as usize)?;
            depth += 1;
            if wave.below == NO_WAVE {
                break;
            }
            above = Some(index);
            index = wave.below;
        }
        let above = above.filter(|_| depth > limit)?;
        self.waves[above as usize].below = NO_WAVE;
        self.free.push(index);
        Some(index)
    }

    /// A wave by index.
    pub(crate) fn wave(&mut self, index: u32) -> &mut RdnaWave {
        &mut self.waves[index as usize]
    }

    /// Indices of a slot's waves, the oldest first.
    pub(crate) fn stack(&self, slot: u8) -> Vec<u32> {
        let mut indices = Vec::new();
        let mut index = self.tops[usize::from(slot) % SLOTS];
        while let Some(wave) = self.waves.get(index as usize) {
            indices.push(index);
            index = wave.below;
        }
        indices.reverse();
        indices
    }
}
