//! The list of recently used wave slots that gfx1250 abbreviates VALU_INST with.

use crate::bits::bits;

/// Position in the list by the four-bit selector of a VALU_INST.
const POSITION: [u8; 16] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4];

/// Slot that an entry never written stands for.
const UNSET: u8 = 31;

/// Six entries, the most recent first. The hardware's own list is one shorter than ours: an entry that falls off the
/// fifth place is remembered once more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecentWaves {
    /// Entries; `NEVER` is none.
    entries: [u8; 6],
}

/// Differs from every slot.
const NEVER: u8 = 0xff;

impl Default for RecentWaves {
    fn default() -> Self {
        RecentWaves { entries: [NEVER; 6] }
    }
}

impl RecentWaves {
    /// A slot was used.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u8) {
        if self.entries[0] == slot {
            return;
        }
        let place = (1..5).rev().find(|&place| self.entries[place] == slot).unwrap_or(5);
        self.entries.copy_within(0..place, 1);
        self.entries[0] = slot;
    }

    /// Slot of a VALU_INST token, which is touched by it.
    #[inline]
    pub(crate) fn take(&mut self, raw: u64) -> u8 {
        let slot = self.entries[usize::from(POSITION[bits(raw, 4, 8) as usize])];
        self.touch(slot);
        if slot == NEVER { UNSET } else { slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_moves_what_is_used_to_the_front() {
        let mut recent = RecentWaves::default();
        assert_eq!(recent.take(0x03), UNSET);
        for slot in [1, 2, 3, 4, 5] {
            recent.touch(slot);
        }
        assert_eq!(recent.entries, [5, 4, 3, 2, 1, NEVER]);
        assert_eq!(recent.take(0xc3), 2);
        assert_eq!(recent.entries, [2, 5, 4, 3, 1, NEVER]);
        recent.touch(1);
        recent.touch(9);
        assert_eq!(recent.entries, [9, 1, 2, 5, 4, 3]);
        recent.touch(3); // the sixth entry is not looked at
        assert_eq!(recent.entries, [3, 9, 1, 2, 5, 4]);
    }
}
