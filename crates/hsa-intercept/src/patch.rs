//! Replaced slots of the runtime's tables, and the way back.
//!
//! Before a slot is read or written its end must lie within the table's `minor_id`, the size with which the runtime was
//! built. Slots are put back only where they still hold ours: another tool may have come after us.

use std::ffi::c_void;

use hsa_sys::HsaApiTable;

use crate::Error;

/// One replaced slot.
#[derive(Debug)]
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
        Self { table, slots }
    }

    /// Whether `table` is the one that was patched and has not been reset by the runtime since.
    ///
    /// # Safety
    /// The patched table is still there.
    pub(crate) unsafe fn holds(&self, table: *mut HsaApiTable) -> bool {
        let reset = |slot: &Slot| {
            // SAFETY: by this function's contract.
            let now = unsafe { slot.place.read() };
            now == slot.original
        };
        self.table == table && !self.slots.iter().all(reset)
    }

    /// Puts back what still holds ours.
    pub(crate) fn restore(self) {
        for slot in &self.slots {
            // SAFETY: the table is static memory of the runtime.
            let now = unsafe { slot.place.read() };
            if now == slot.ours {
                // SAFETY: likewise.
                unsafe { slot.place.write(slot.original) };
            }
        }
    }
}
