//! Which code object an address belongs to, as the marker words of the stream say.

use std::collections::BTreeMap;

use crate::record::Pc;

/// Disjoint address ranges by start, each with the code object that owns it.
#[derive(Debug, Clone, Default)]
struct Ranges {
    by_start: BTreeMap<u64, (u64, u64)>,
    /// Start, end and owner of the range if there is only one, as in most traces.
    only: Option<(u64, u64, u64)>,
}

impl Ranges {
    /// Enters `start..start + size`, removing everything that overlaps it. An empty range is not entered.
    fn insert(&mut self, start: u64, size: u64, id: u64) {
        if size == 0 {
            return;
        }
        let end = start.saturating_add(size);
        if let Some((&before, &(before_end, _))) = self.by_start.range(..start).next_back()
            && before_end > start
        {
            self.by_start.remove(&before);
        }
        while let Some((&inside, _)) = self.by_start.range(start..end).next() {
            self.by_start.remove(&inside);
        }
        self.by_start.insert(start, (end, id));
        self.note_only();
    }

    fn remove(&mut self, start: u64) {
        self.by_start.remove(&start);
        self.note_only();
    }

    fn note_only(&mut self) {
        self.only = match self.by_start.first_key_value() {
            Some((&start, &(end, id))) if self.by_start.len() == 1 => Some((start, end, id)),
            _ => None,
        };
    }

    fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Start and owner of the range that contains `address`.
    #[inline]
    fn find(&self, address: u64) -> Option<(u64, u64)> {
        if let Some((start, end, id)) = self.only {
            return (start <= address && address < end).then_some((start, id));
        }
        self.find_among_many(address)
    }

    fn find_among_many(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &(end, id)) = self.by_start.range(..=address).next_back()?;
        (address < end).then_some((start, id))
    }

    #[inline]
    fn resolve(&self, address: u64) -> Option<Pc> {
        self.find(address).map(|(start, id)| Pc { address: address - start, code_object_id: id })
    }
}

/// Code objects announced so far.
#[derive(Debug, Clone)]
pub(crate) struct CodeObjects {
    /// Entries that each table may have.
    limit: usize,
    /// Load address and size by id, of those loaded now.
    active: BTreeMap<u64, (u64, u64)>,
    loaded: Ranges,
    /// Those loaded before the trace began, unloaded ones too: their addresses can be looked up late.
    from_start: Ranges,
}

impl Default for CodeObjects {
    fn default() -> Self {
        CodeObjects::with_limit(u32::MAX)
    }
}

impl CodeObjects {
    /// None yet, and never more than `limit` at a time.
    pub(crate) fn with_limit(limit: u32) -> Self {
        CodeObjects {
            limit: limit as usize,
            active: BTreeMap::new(),
            loaded: Ranges::default(),
            from_start: Ranges::default(),
        }
    }

    /// Takes a load; false if the id is loaded already, or too many are.
    pub(crate) fn load(&mut self, id: u64, address: u64, size: u64, before_trace: bool) -> bool {
        if self.active.contains_key(&id) || self.active.len() >= self.limit {
            return false;
        }
        self.active.insert(id, (address, size));
        self.loaded.insert(address, size, id);
        if before_trace && self.from_start.len() < self.limit {
            self.from_start.insert(address, size, id);
        }
        true
    }

    /// Takes an unload; false if the id is not loaded.
    pub(crate) fn unload(&mut self, id: u64) -> bool {
        let Some((address, _)) = self.active.remove(&id) else { return false };
        if let Some((start, _)) = self.loaded.find(address) {
            self.loaded.remove(start);
        }
        true
    }

    /// An absolute address as a program counter: inside a loaded code object if there is one.
    #[inline]
    pub(crate) fn translate(&self, address: u64) -> Pc {
        self.loaded.resolve(address).unwrap_or(Pc { address, code_object_id: 0 })
    }

    /// Whether looking up late can find anything.
    #[inline(always)]
    pub(crate) fn can_resolve_late(&self) -> bool {
        !self.from_start.is_empty()
    }

    /// The entry of a wave that ends. One at address 0 stays as it is.
    #[inline(always)]
    pub(crate) fn resolve_end(&self, entry: Pc) -> Pc {
        if self.can_resolve_late() && entry.address != 0 { self.resolve_late(entry) } else { entry }
    }

    /// Looks an absolute program counter up among the code objects loaded before the trace began. The words that
    /// announce them come somewhere in the stream, so this is done as late as possible.
    pub(crate) fn resolve_late(&self, pc: Pc) -> Pc {
        if pc.code_object_id != 0 || self.from_start.is_empty() {
            return pc;
        }
        self.from_start.resolve(pc.address).unwrap_or(pc)
    }

    /// Those loaded now, by id: id, load address, size.
    pub(crate) fn active(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.active.iter().map(|(&id, &(address, size))| (id, address, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn pc(address: u64, code_object_id: u64) -> Pc {
        Pc { address, code_object_id }
    }

    #[test]
    fn a_new_range_displaces_what_it_overlaps() {
        let mut code = CodeObjects::default();
        assert!(code.load(1, 100, 50, false));
        assert!(code.load(2, 200, 50, false));
        assert!(code.load(3, 149, 52, false));
        assert_eq!(code.translate(120), pc(120, 0));
        assert_eq!(code.translate(210), pc(210, 0));
        assert_eq!(code.translate(149), pc(0, 3));
        assert_eq!(code.translate(201), pc(201, 0));
    }

    #[test]
    fn unloaded_code_stays_known_if_it_was_there_from_the_start() {
        let mut code = CodeObjects::default();
        assert!(code.load(7, 0x1000, 0x100, true));
        assert!(!code.load(7, 0x9000, 0x100, true), "an active id is not loaded twice");
        assert!(code.unload(7));
        assert!(!code.unload(7));
        assert_eq!(code.translate(0x1010), pc(0x1010, 0));
        assert_eq!(code.resolve_late(pc(0x1010, 0)), pc(0x10, 7));
        assert_eq!(code.resolve_late(pc(0x1010, 9)), pc(0x1010, 9));
    }

    #[test]
    fn unloading_takes_away_the_range_at_the_old_address_whoever_owns_it_now() {
        let mut code = CodeObjects::default();
        code.load(1, 100, 50, false);
        code.load(2, 90, 50, false); // displaces 1
        assert!(code.unload(1));
        assert_eq!(code.translate(100), pc(100, 0));
    }
}
