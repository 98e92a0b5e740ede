//! Replaced slots of the runtime's tables, and the way back.
//!
//! Before a slot is read or written its end must lie within the table's `minor_id`, the size with which the runtime was
//! built. Slots are put back only where they still hold ours: another tool may have come after us.

use std::ffi::c_void;

use hsa_sys::HsaApiTable;

use crate::Error;

/// One replaced slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Where it is: a function pointer in the runtime's table.
    place: *mut *const c_void,
    ours: *const c_void,
    original: *const c_void,
}

/// What was replaced in one table.
#[derive(Debug)]
pub(crate) struct Patch {
    table: *mut HsaApiTable,
    slots: Vec<Slot>,
    restored: bool,
}

// SAFETY: the places are static memory of the runtime, written by `apply` and `restore` only; both are called where
// the runtime lets tools change its table.
unsafe impl Send for Patch {}

/// A slot of a table part: refused if the runtime's part ends before it, or if it is empty.
///
/// The part must be live and begin with its version: callers are functions whose contract says so.
macro_rules! slot {
    ($part:expr, $table:ty, $field:ident, $ours:expr, $kind:ty) => {{
        let part: *mut $table = $part;
        let end = std::mem::offset_of!($table, $field) + size_of::<usize>();
        // SAFETY: the part is live and begins with its version, by the contract of the function around.
        let size = unsafe { part.cast::<hsa_sys::ApiTableVersion>().read() }.minor_id as usize;
        if end > size {
            Err($crate::Error::MissingEntry { call: stringify!($field) })
        } else {
            let ours: $kind = $ours;
            // SAFETY: the field lies within the part, as just checked.
            let place = unsafe { &raw mut (*part).$field }.cast::<*const std::ffi::c_void>();
            $crate::patch::Slot::new(place, ours as *const std::ffi::c_void, stringify!($field))
        }
    }};
}

pub(crate) use slot;

impl Slot {
    pub(crate) fn new(
        place: *mut *const c_void,
        ours: *const c_void,
        call: &'static str,
    ) -> Result<Self, Error> {
        // SAFETY: the place is a slot of a live table: a function pointer or null.
        let original = unsafe { place.read() };
        if original.is_null() {
            return Err(Error::MissingEntry { call });
        }
        Ok(Self { place, ours, original })
    }

    /// What stood there before us.
    pub(crate) fn original(&self) -> *const c_void {
        self.original
    }

    /// Whether both stand at the same place of a table.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.place == other.place
    }

    /// In a copy of `size` bytes, at `copy`, of the table part at `part`: what was there before us.
    ///
    /// # Safety
    /// `copy` has `size` bytes that can be written.
    pub(crate) unsafe fn undo_in(&self, part: *const u8, copy: *mut u8, size: usize) {
        let offset = self.place.addr().wrapping_sub(part.addr());
        if offset < size {
            let place = copy.wrapping_add(offset).cast::<*const c_void>();
            // SAFETY: a slot's place has its alignment, also in the copy, and lies within it.
            unsafe { place.write(self.original) };
        }
    }

    /// # Safety
    /// The table is still there.
    unsafe fn read(&self) -> *const c_void {
        // SAFETY: by this function's contract.
        unsafe { self.place.read() }
    }
}

impl Patch {
    /// Writes our entries.
    ///
    /// # Safety
    /// The slots are those of `table`, which is live, and nobody calls through it or writes it meanwhile.
    pub(crate) unsafe fn apply(table: *mut HsaApiTable, slots: Vec<Slot>) -> Self {
        for slot in &slots {
            // SAFETY: by this function's contract.
            unsafe { slot.place.write(slot.ours) };
        }
        Self { table, slots, restored: false }
    }

    /// Whether `table` is the one that was patched, and is neither put back nor reset by the runtime since.
    ///
    /// # Safety
    /// The patched table is still there.
    pub(crate) unsafe fn holds(&self, table: *mut HsaApiTable) -> bool {
        // SAFETY: by this function's contract.
        let reset = |slot: &Slot| unsafe { slot.read() } == slot.original;
        self.table == table && !self.restored && !self.slots.iter().all(reset)
    }

    /// Puts back what still holds ours. Where another tool's entry lies over ours the slot stays as it is: that tool goes
    /// on calling us. Again later is fine: the other tool may have left.
    pub(crate) fn restore(&mut self) {
        self.restored = true;
        self.slots.retain(|slot| {
            // SAFETY: the table is static memory of the runtime.
            let now = unsafe { slot.read() };
            if now == slot.ours {
                // SAFETY: likewise.
                unsafe { slot.place.write(slot.original) };
            }
            now != slot.ours && now != slot.original
        });
    }

    /// What another tool lies over in `table`, after [`restore`](Self::restore).
    pub(crate) fn covered(&self, table: *mut HsaApiTable) -> &[Slot] {
        if self.table == table && self.restored { &self.slots } else { &[] }
    }
}
