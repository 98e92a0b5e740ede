//! Register storage with banks.
//!
//! A write reaches every copy that its selection covers. Instead of one value per copy, a register keeps the writes
//! that are not yet covered by later ones, oldest first: few, since command buffers mostly broadcast.

use std::collections::HashMap;

use wavescope_pm4::GrbmGfxIndex;

/// Which copies of a register: XCCs as bits, the rest as GRBM_GFX_INDEX has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) xccs: u8,
    pub(crate) index: GrbmGfxIndex,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    selection: Selection,
    value: u32,
}

/// All registers of a device.
#[derive(Debug)]
pub(crate) struct RegisterFile {
    /// Lists by the 16-bit address space, 0 for a register never written.
    near: Vec<u16>,
    /// Lists of the registers beyond: other dies.
    far: HashMap<u64, u16>,
    /// The first stays empty.
    lists: Vec<Vec<Entry>>,
}

impl RegisterFile {
    const NEAR: usize = 0x1_0000;

    pub(crate) fn new() -> Self {
        Self { near: vec![0; Self::NEAR], far: HashMap::new(), lists: vec![Vec::new()] }
    }

    /// The register's list, a new one if it has none. Beyond 65,535 registers, which no chip has, further ones share
    /// the last list.
    fn list(&mut self, address: u64) -> &mut Vec<Entry> {
        let number = match self.near.get_mut(address as usize) {
            Some(number) => number,
            None => self.far.entry(address).or_default(),
        };
        if *number == 0 {
            *number = u16::try_from(self.lists.len()).unwrap_or(u16::MAX);
            self.lists.push(Vec::new());
        }
        &mut self.lists[usize::from(*number)]
    }

    pub(crate) fn write(&mut self, address: u64, selection: Selection, value: u32) {
        let entries = self.list(address);
        entries.retain_mut(|entry| {
            if covers(selection.index, entry.selection.index) {
                entry.selection.xccs &= !selection.xccs;
            }
            entry.selection.xccs != 0
        });
        entries.push(Entry { selection, value });
    }

    /// The value of one copy; 0 if never written. A broadcast index reads copy 0.
    pub(crate) fn read(&self, address: u64, xcc: usize, index: GrbmGfxIndex) -> u32 {
        let zero = |part: Option<u8>| Some(part.unwrap_or(0));
        let one = GrbmGfxIndex { se: zero(index.se), sa: zero(index.sa), instance: zero(index.instance) };
        let number = self.near.get(address as usize).or_else(|| self.far.get(&address)).copied().unwrap_or(0);
        let entries = &self.lists[usize::from(number)];
        let hits =
            |entry: &&Entry| entry.selection.xccs >> xcc & 1 != 0 && covers(entry.selection.index, one);
        entries.iter().rev().find(hits).map_or(0, |entry| entry.value)
    }
}

/// Whether every copy of `inner` is one of `outer`.
fn covers(outer: GrbmGfxIndex, inner: GrbmGfxIndex) -> bool {
    let part = |outer: Option<u8>, inner| outer.is_none() || outer == inner;
    part(outer.se, inner.se) && part(outer.sa, inner.sa) && part(outer.instance, inner.instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Selection = Selection { xccs: 0xFF, index: GrbmGfxIndex::BROADCAST };

    fn engine(se: u8) -> GrbmGfxIndex {
        GrbmGfxIndex::BROADCAST.with_se(se)
    }

    #[test]
    fn a_narrow_write_shadows_a_broadcast_and_the_next_broadcast_shadows_it() {
        let mut file = RegisterFile::new();
        file.write(0xD9C0, ALL, 1);
        file.write(0xD9C0, Selection { xccs: 0b10, index: engine(3) }, 2);
        assert_eq!(file.read(0xD9C0, 1, engine(3)), 2);
        assert_eq!(file.read(0xD9C0, 0, engine(3)), 1);
        assert_eq!(file.read(0xD9C0, 1, engine(2)), 1);
        file.write(0xD9C0, ALL, 3);
        assert_eq!(file.read(0xD9C0, 1, engine(3)), 3);
        assert_eq!(file.list(0xD9C0).len(), 1);
    }

    #[test]
    fn reading_with_a_broadcast_index_shows_copy_0() {
        let mut file = RegisterFile::new();
        file.write(0xD9C0, Selection { xccs: 1, index: engine(0) }, 7);
        file.write(0xD9C0, Selection { xccs: 1, index: engine(1) }, 8);
        assert_eq!(file.read(0xD9C0, 0, GrbmGfxIndex::BROADCAST), 7);
        assert_eq!(file.read(0xD9C0, 1, GrbmGfxIndex::BROADCAST), 0);
    }
}
