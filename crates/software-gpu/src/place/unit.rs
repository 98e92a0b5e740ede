//! One place: its slots, registers and LDS, each with the cycle from which it is free.

use crate::kernel::Needs;

/// Fixed limits of every place of a chip, for waves of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) simds: u8,
    pub(crate) slots: u8,
    /// Registers of a SIMD, counted for waves of the dispatch's size.
    pub(crate) vgprs: u32,
    pub(crate) lds_bytes: u32,
    /// Work-groups of more than one wave: each needs a barrier of the hardware.
    pub(crate) barriers: usize,
}

impl Limits {
    /// Whether an empty place has room for `waves` waves of one work-group.
    pub(crate) fn holds(&self, waves: u32, needs: &Needs) -> bool {
        let by_registers = WHOLE.checked_div(share(needs, self)).unwrap_or(u32::MAX);
        let per_simd = by_registers.min(u32::from(self.slots));
        needs.lds_bytes <= self.lds_bytes && waves <= per_simd.saturating_mul(u32::from(self.simds))
    }
}

/// A wave slot: busy until `free`, holding a share of the SIMD's registers in parts per 65,536, so that waves of
/// both sizes add up.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    free: u64,
    share: u32,
}

/// A resident work-group.
#[derive(Clone, Copy, Debug)]
struct Group {
    free: u64,
    lds_bytes: u32,
    barrier: bool,
}

/// A compute unit or WGP.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    simds: Vec<Vec<Slot>>,
    groups: Vec<Group>,
    next_simd: usize,
}

/// Where a wave of a work-group goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) simd: u8,
    pub(crate) slot: u8,
}

/// The whole of a SIMD's registers.
const WHOLE: u32 = 1 << 16;

impl Unit {
    pub(crate) fn new(limits: &Limits) -> Self {
        let simd = vec![Slot::default(); usize::from(limits.slots)];
        Self { simds: vec![simd; usize::from(limits.simds)], groups: Vec::new(), next_simd: 0 }
    }

    /// Finds seats for `waves` waves of one work-group at cycle `now`; false, and `seats` undefined, without room.
    pub(crate) fn find(
        &mut self,
        now: u64,
        waves: u32,
        needs: &Needs,
        limits: &Limits,
        seats: &mut Vec<Seat>,
    ) -> bool {
        seats.clear();
        self.groups.retain(|group| group.free > now);
        let lds: u32 = self.groups.iter().map(|group| group.lds_bytes).sum();
        let barriers = self.groups.iter().filter(|group| group.barrier).count();
        if lds + needs.lds_bytes > limits.lds_bytes || waves > 1 && barriers >= limits.barriers {
            return false;
        }
        let mut simd = self.next_simd;
        for _ in 0..waves {
            let Some(seat) = self.seat(now, simd, needs, limits, seats) else { return false };
            seats.push(seat);
            simd = (usize::from(seat.simd) + 1) % self.simds.len();
        }
        self.next_simd = simd;
        true
    }

    /// The first SIMD from `first` on that has a free slot and enough registers, with its lowest free slot.
    fn seat(&self, now: u64, first: usize, needs: &Needs, limits: &Limits, taken: &[Seat]) -> Option<Seat> {
        let count = self.simds.len();
        (0..count).map(|step| (first + step) % count).find_map(|simd| {
            let slots = &self.simds[simd];
            let taken_here = || taken.iter().filter(|seat| usize::from(seat.simd) == simd);
            let share = share(needs, limits);
            let held: u32 = slots.iter().filter(|slot| slot.free > now).map(|slot| slot.share).sum();
            if held + share * (taken_here().count() as u32 + 1) > WHOLE {
                return None;
            }
            let is_free = |slot: usize| {
                slots[slot].free <= now && !taken_here().any(|seat| usize::from(seat.slot) == slot)
            };
            let slot = (0..slots.len()).find(|&slot| is_free(slot))?;
            Some(Seat { simd: simd as u8, slot: slot as u8 })
        })
    }

    /// Waves that a SIMD has on average at cycle `now`, `more` of them added; at least one.
    pub(crate) fn waves_of_simd(&self, now: u64, more: u32) -> u32 {
        let busy = self.simds.iter().flatten().filter(|slot| slot.free > now).count() as u32;
        (busy + more).div_ceil(self.simds.len() as u32).max(1)
    }

    /// Takes a seat until `end`.
    pub(crate) fn occupy(&mut self, seat: Seat, end: u64, needs: &Needs, limits: &Limits) {
        let slot = &mut self.simds[usize::from(seat.simd)][usize::from(seat.slot)];
        *slot = Slot { free: end, share: share(needs, limits) };
    }

    /// Notes a work-group's LDS and barrier until its last wave ends.
    pub(crate) fn hold_group(&mut self, end: u64, waves: u32, needs: &Needs) {
        self.groups.push(Group { free: end, lds_bytes: needs.lds_bytes, barrier: waves > 1 });
    }

    /// The first cycle after `now` at which anything here becomes free.
    pub(crate) fn next_change(&self, now: u64) -> u64 {
        let slots = self.simds.iter().flatten().map(|slot| slot.free);
        let groups = self.groups.iter().map(|group| group.free);
        slots.chain(groups).filter(|&free| free > now).min().unwrap_or(u64::MAX)
    }
}

/// Rounded down: 1536 registers divided by 96 must leave room for exactly 16 waves.
const fn share(needs: &Needs, limits: &Limits) -> u32 {
    needs.vgprs * WHOLE / limits.vgprs
}
