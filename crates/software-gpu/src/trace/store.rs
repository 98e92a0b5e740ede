//! From encoded bits to trace buffers in memory: one that ends when it is full, or two that take turns.
//!
//! With two buffers, the unit goes on with the other one when one is full, if software has given it one since; else tokens
//! are lost until it does. The bits run on across the seam, so the buffers one after the other are one stream.
//!
//! gfx12 has two sets of buffer registers and says which of them are full (`SQ_THREAD_TRACE_STATUS2`, kernel
//! `gc_12_0_0_sh_mask.h`). gfx9 has one set: an address that is written while the trace runs is the next buffer's (order of
//! writes: ROCm/rocm-systems, projects/aqlprofile `src/pm4/sqtt_builder.h`). What gfx9 does when none was written in time is
//! not public; here it loses tokens like its successors.

use crate::sqtt::BitWriter;

/// The hardware writes whole pieces of this many bytes, and counts them in WPTR.
pub(crate) const PIECE: u64 = 32;

/// Where a trace goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// What the fault plan leaves of it.
    pub(crate) limit: u64,
    /// Whether all of it can be written.
    pub(crate) mapped: bool,
}

/// Bytes on their way to memory.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) address: u64,
    pub(crate) dwords: Vec<u32>,
}

/// Encoded bits and the buffers that they go to.
#[derive(Debug, Default)]
pub(crate) struct Store {
    encoded: BitWriter,
    buffer: Buffer,
    /// Bytes of the present buffer that were handed out.
    written: u64,
    /// Which of the two buffers is the present one.
    present: usize,
    /// What comes after it.
    next: Option<Buffer>,
    full: [bool; 2],
    /// Whether two buffers take turns.
    double: bool,
    /// Tokens were lost because no buffer was free.
    starved: bool,
    unmapped: bool,
    outputs: Vec<Output>,
}

impl Store {
    /// Encoded bits that are kept back for the next piece of memory.
    const KEPT_BITS: u64 = 1 << 20;

    /// Goes on with `buffer`, behind what it already holds.
    pub(crate) fn begin(&mut self, buffer: Buffer, double: bool) {
        (self.buffer, self.double, self.next) = (buffer, double, None);
        self.unmapped = buffer.size > 0 && !buffer.mapped;
    }

    /// Forgets what was written: an empty buffer, nothing lost.
    pub(crate) fn clear(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        *self = Self { buffer: self.buffer, double: self.double, outputs, ..Self::default() };
    }

    /// Software gives a buffer that is not being written; `None`: whichever it is.
    pub(crate) fn give(&mut self, index: Option<usize>, buffer: Buffer) {
        let other = 1 - self.present;
        if self.double && index.is_none_or(|index| index == other) {
            self.next = Some(buffer);
            self.full[other] = false;
            self.settle();
        }
    }

    /// Where tokens go.
    pub(crate) const fn bits(&mut self) -> &mut BitWriter {
        &mut self.encoded
    }

    /// Whether the next token has a place.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.encoded.bits() < self.room() * 8 {
            return true;
        }
        self.full[self.present] = true;
        self.starved |= self.double;
        false
    }

    /// After tokens were written: goes to the next buffer if they fill this one, and hands out what is much.
    pub(crate) fn settle(&mut self) {
        while self.double && self.encoded.bits() >= self.room() * 8 {
            self.full[self.present] = true;
            let Some(next) = self.next.take() else { return };
            self.hand_out();
            self.unmapped |= !next.mapped;
            (self.buffer, self.written, self.present) = (next, 0, 1 - self.present);
        }
        if self.encoded.bits() > Self::KEPT_BITS {
            self.hand_out();
        }
    }

    /// Fills the last piece and hands out everything.
    pub(crate) fn finish(&mut self) {
        self.encoded.pad(PIECE);
        self.settle();
        self.hand_out();
        // What did not fit.
        self.full[self.present] |= self.encoded.bits() > 0;
        self.encoded = BitWriter::default();
    }

    /// Hands out the whole pieces, up to where the buffer ends.
    pub(crate) fn hand_out(&mut self) {
        let room = self.room() / PIECE * PIECE;
        let dwords = self.encoded.take_most(PIECE as usize / 4, room as usize / 4);
        let address = self.buffer.address + self.written;
        self.written += dwords.len() as u64 * 4;
        if !dwords.is_empty() && self.buffer.mapped {
            self.outputs.push(Output { address, dwords });
        }
    }

    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Bytes left of the present buffer.
    const fn room(&self) -> u64 {
        self.buffer.limit.saturating_sub(self.written)
    }

    /// Pieces in the present buffer.
    pub(crate) const fn pieces(&self) -> u64 {
        self.written / PIECE
    }

    /// Which of two buffers is the present one.
    pub(crate) const fn present(&self) -> usize {
        self.present
    }

    /// Which buffers are full and have not been replaced since.
    pub(crate) const fn full(&self) -> [bool; 2] {
        self.full
    }

    pub(crate) const fn is_starved(&self) -> bool {
        self.starved
    }

    pub(crate) const fn is_unmapped(&self) -> bool {
        self.unmapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(address: u64) -> Buffer {
        Buffer { address, size: 64, limit: 64, mapped: true }
    }

    /// Writes so many dwords, numbered from `from`.
    fn write(store: &mut Store, from: u32, count: u32) -> u32 {
        let mut written = 0;
        for number in from..from + count {
            if store.has_room() {
                store.bits().push(number.into(), 32);
                store.settle();
                written += 1;
            }
        }
        written
    }

    fn outputs(store: &mut Store) -> Vec<(u64, Vec<u32>)> {
        store.take_outputs().into_iter().map(|output| (output.address, output.dwords)).collect()
    }

    #[test]
    fn two_buffers_take_turns_as_long_as_software_keeps_up() {
        let mut store = Store::default();
        store.begin(buffer(0x1000), true);
        store.give(Some(1), buffer(0x2000));
        assert_eq!(write(&mut store, 0, 18), 18);
        assert_eq!((store.full(), store.present()), ([true, false], 1));
        store.give(Some(1), buffer(0x9000)); // not the one that is free
        store.give(Some(0), buffer(0x3000));
        assert_eq!(store.full(), [false, false]);
        assert_eq!(write(&mut store, 18, 16), 16);
        store.finish();
        let (first, second) = ((0..16).collect(), (16..32).collect());
        let last = [vec![32, 33], vec![0; 6]].concat();
        assert_eq!(outputs(&mut store), [(0x1000, first), (0x2000, second), (0x3000, last)]);
        assert!(!store.is_starved());
    }

    #[test]
    fn without_a_free_buffer_tokens_are_lost_until_there_is_one() {
        let mut store = Store::default();
        store.begin(buffer(0x1000), true);
        assert_eq!(write(&mut store, 0, 20), 16);
        assert!(store.is_starved() && store.full()[0]);
        store.give(None, buffer(0x2000));
        assert_eq!(write(&mut store, 20, 8), 8);
        store.finish();
        let found = outputs(&mut store);
        assert_eq!(found, [(0x1000, (0..16).collect()), (0x2000, (20..28).collect())]);
    }

    #[test]
    fn single_buffer_ends_when_it_is_full() {
        let mut store = Store::default();
        store.begin(buffer(0x1000), false);
        assert_eq!(write(&mut store, 0, 20), 16);
        store.give(None, buffer(0x2000));
        store.finish();
        assert_eq!(outputs(&mut store), [(0x1000, (0..16).collect())]);
        assert!(store.full()[0] && !store.is_starved());
    }
}
