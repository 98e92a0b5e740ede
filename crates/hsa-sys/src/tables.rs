//! Reading an API table of a runtime that may be older than our headers.
//!
//! Each table begins with an [`ApiTableVersion`](crate::ApiTableVersion) whose `minor_id` is the size in bytes of the table that the runtime was
//! built with (`hsa/hsa_api_trace_version.h`). A slot beyond it does not exist: reading it reads foreign memory.

/// Whether a table of `minor_id` bytes has the slot at byte `offset`.
pub const fn has_slot(minor_id: u32, offset: usize) -> bool {
    offset + size_of::<Option<fn()>>() <= minor_id as usize
}

/// The function in a table's slot, by its field name: `None` when the runtime's table ends before the slot, or the
/// slot is empty.
///
/// Must be called in `unsafe`: the pointer must point to a live table of the runtime.
///
/// ```
/// use hsa_sys::{CoreApiTable, table_slot};
///
/// let mut table = CoreApiTable::zeroed();
/// table.version.minor_id = 16; // a table without any slot
/// // SAFETY: the pointer points to a table.
/// assert!(unsafe { table_slot!(&raw const table, CoreApiTable, hsa_init_fn) }.is_none());
/// ```
#[macro_export]
macro_rules! table_slot {
    ($table:expr, $type:ident, $slot:ident) => {{
        let table: *const $crate::$type = $table;
        let minor_id = (*table).version.minor_id;
        if $crate::has_slot(minor_id, core::mem::offset_of!($crate::$type, $slot)) {
            (*table).$slot
        } else {
            None
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_exists_when_the_table_reaches_to_its_end() {
        assert!(has_slot(24, 16));
        assert!(!has_slot(23, 16));
        assert!(!has_slot(16, 16));
    }
}
