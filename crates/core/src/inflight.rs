//! What is in flight: a slab whose keys go stale.
//!
//! ```
//! use wavescope_core::InFlight;
//!
//! let mut in_flight = InFlight::with_capacity(2);
//! let first = in_flight.insert("first").unwrap();
//! assert_eq!(in_flight.remove(first), Some("first"));
//! let second = in_flight.insert("second").unwrap();
//! assert_eq!(in_flight.get(first), None); // same slot, older generation
//! assert_eq!(in_flight.get(second), Some(&"second"));
//! ```

use slab::Slab;

use crate::Token;

/// A bounded store keyed by generation-checked [`Token`]s. It allocates only when it is made.
#[derive(Debug)]
pub struct InFlight<T> {
    entries: Slab<T>,
    /// Generation of each slot, counted up when its entry leaves.
    generations: Vec<u32>,
}

impl<T> InFlight<T> {
    /// Room for `capacity` entries at a time.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { entries: Slab::with_capacity(capacity), generations: vec![0; capacity] }
    }

    /// Stores `entry`.
    ///
    /// # Errors
    /// Hands `entry` back when `capacity` entries are in flight.
    pub fn insert(&mut self, entry: T) -> Result<Token, T> {
        if self.entries.len() == self.generations.len() {
            return Err(entry);
        }
        let index = self.entries.insert(entry);
        Ok(Token { index: index as u32, generation: self.generations[index] })
    }

    /// The entry of `token`, unless it left.
    pub fn get(&self, token: Token) -> Option<&T> {
        self.is_current(token).then(|| self.entries.get(token.index as usize)).flatten()
    }

    /// The entry of `token`, unless it left.
    pub fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        if self.is_current(token) { self.entries.get_mut(token.index as usize) } else { None }
    }

    /// Takes the entry of `token` out; the token and its copies are stale from then on.
    pub fn remove(&mut self, token: Token) -> Option<T> {
        if !self.is_current(token) {
            return None;
        }
        let entry = self.entries.try_remove(token.index as usize)?;
        let generation = &mut self.generations[token.index as usize];
        *generation = generation.wrapping_add(1);
        Some(entry)
    }

    /// How many entries are in flight.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries fit.
    pub fn capacity(&self) -> usize {
        self.generations.len()
    }

    /// All entries with their tokens, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        self.entries
            .iter()
            .map(|(index, entry)| (Token { index: index as u32, generation: self.generations[index] }, entry))
    }

    fn is_current(&self, token: Token) -> bool {
        self.generations.get(token.index as usize) == Some(&token.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_token_neither_reads_nor_removes_the_new_entry() {
        let mut store = InFlight::with_capacity(1);
        let old = store.insert(1).unwrap();
        assert_eq!(store.remove(old), Some(1));
        let new = store.insert(2).unwrap();
        assert_eq!(old.index, new.index);
        assert_eq!(store.get(old), None);
        assert_eq!(store.get_mut(old), None);
        assert_eq!(store.remove(old), None);
        assert_eq!(store.remove(new), Some(2));
        assert_eq!(store.remove(new), None);
    }

    #[test]
    fn full_store_hands_the_entry_back() {
        let mut store = InFlight::with_capacity(2);
        let first = store.insert("a").unwrap();
        store.insert("b").unwrap();
        assert_eq!(store.insert("c"), Err("c"));
        store.remove(first);
        assert!(store.insert("c").is_ok());
        assert_eq!((store.len(), store.capacity()), (2, 2));
    }

    #[test]
    fn foreign_index_is_none() {
        let store = InFlight::<()>::with_capacity(1);
        assert_eq!(store.get(Token { index: 7, generation: 0 }), None);
    }

    #[test]
    fn iteration_yields_usable_tokens() {
        let mut store = InFlight::with_capacity(3);
        let a = store.insert('a').unwrap();
        store.insert('b').unwrap();
        store.remove(a);
        store.insert('c').unwrap();
        for (token, entry) in store.iter() {
            assert_eq!(store.get(token), Some(entry));
        }
        assert_eq!(store.iter().count(), 2);
    }
}
