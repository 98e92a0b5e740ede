//! What somebody ends while others use it.

use loom::cell::UnsafeCell;

/// Something that is used and ends: the model fails if that is not in order.
pub(crate) struct Mortal(UnsafeCell<bool>);

// SAFETY: the cell fails the model if two threads use it at a time and one of them changes it.
unsafe impl Sync for Mortal {}
// SAFETY: likewise.
unsafe impl Send for Mortal {}

impl Mortal {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(true))
    }

    /// Uses it. `wrong` says what happens if it has ended.
    pub(crate) fn use_it(&self, wrong: &str) {
        // SAFETY: the cell is its owner's, and checks that nobody changes it.
        self.0.with(|is_there| assert!(unsafe { *is_there }, "{wrong}"));
    }

    pub(crate) fn end(&self) {
        // SAFETY: as above, and that nobody uses it.
        self.0.with_mut(|is_there| unsafe { *is_there = false });
    }
}
