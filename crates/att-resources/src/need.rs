//! How much memory contexts need, and what that adds up to on an agent.

use crate::BufferId;

/// What one context needs on an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Size of each of its buffers, for all shader engines together, bytes.
    pub buffer_bytes: u64,
    /// Buffers that are written in turn; 0 and 1 both mean one, without staging.
    pub buffers: u32,
}

/// The largest need for each slot: what N contexts share, not what they add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotSizes {
    /// Bytes of each output slot.
    pub output: Vec<u64>,
    /// Bytes of each staging slot; none while every context has one buffer.
    pub staging: Vec<u64>,
}

/// What a lease comes with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The context's own need: what its producer copies and checks with.
    pub own: Need,
    /// The buffers that it shares, each as large as its largest user needs.
    pub shared: SlotSizes,
}

impl Need {
    fn output_slots(self) -> usize {
        self.buffers.max(1) as usize
    }

    fn staging_slots(self) -> usize {
        if self.buffers > 1 { self.buffers as usize } else { 0 }
    }
}

impl SlotSizes {
    /// Makes every slot that `need` reaches large enough for it.
    pub fn raise(&mut self, need: Need) {
        raise(&mut self.output, need.output_slots(), need.buffer_bytes);
        raise(&mut self.staging, need.staging_slots(), need.buffer_bytes);
    }

    /// Whether `need` fits as it is.
    pub fn covers(&self, need: Need) -> bool {
        let fits = |slots: &[u64], count: usize| {
            slots.get(..count).is_some_and(|slots| slots.iter().all(|&bytes| bytes >= need.buffer_bytes))
        };
        fits(&self.output, need.output_slots()) && fits(&self.staging, need.staging_slots())
    }

    /// Size of one buffer, `None` beyond the last slot.
    pub fn size(&self, buffer: BufferId) -> Option<u64> {
        match buffer {
            BufferId::Output(slot) => self.output.get(slot as usize).copied(),
            BufferId::Staging(slot) => self.staging.get(slot as usize).copied(),
        }
    }
}

fn raise(slots: &mut Vec<u64>, count: usize, bytes: u64) {
    if slots.len() < count {
        slots.resize(count, 0);
    }
    slots[..count].iter_mut().for_each(|slot| *slot = bytes.max(*slot));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    // The published example: three buffers of 2 MiB and four of 1 MiB.
    #[test]
    fn slot_is_sized_to_the_largest_context_that_reaches_it() {
        let mut sizes = SlotSizes::default();
        sizes.raise(Need { buffer_bytes: 2 * MIB, buffers: 3 });
        sizes.raise(Need { buffer_bytes: MIB, buffers: 4 });
        assert_eq!(sizes.staging, [2 * MIB, 2 * MIB, 2 * MIB, MIB]);
        assert_eq!(sizes.output, sizes.staging);
    }

    #[test]
    fn single_buffer_contexts_need_no_staging() {
        let mut sizes = SlotSizes::default();
        sizes.raise(Need { buffer_bytes: MIB, buffers: 1 });
        sizes.raise(Need { buffer_bytes: 2 * MIB, buffers: 0 });
        assert_eq!(sizes, SlotSizes { output: vec![2 * MIB], staging: vec![] });
    }

    #[test]
    fn covers_what_is_equal_or_smaller_in_size_and_number() {
        let mut sizes = SlotSizes::default();
        sizes.raise(Need { buffer_bytes: 2 * MIB, buffers: 3 });
        for (bytes, buffers, covered) in
            [(2 * MIB, 3, true), (MIB, 1, true), (2 * MIB + 1, 1, false), (MIB, 4, false)]
        {
            assert_eq!(sizes.covers(Need { buffer_bytes: bytes, buffers }), covered, "{bytes} x {buffers}");
        }
        assert_eq!(sizes.size(BufferId::Output(2)), Some(2 * MIB));
        assert_eq!(sizes.size(BufferId::Staging(3)), None);
    }
}
