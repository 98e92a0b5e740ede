//! Entries that this runtime does not provide: each returns a status of its own, whose text names the entry.
//!
//! The statuses are numbers of ours outside AMD's range. What they mean is told by `hsa_status_string`, and by a line
//! in the log at the call, since few programs ask.

use hsa_sys::{hsa_amd_tool_event_t, hsa_status_t};

use super::table;

/// First status of refused entries: `WS` in ASCII. Below it: 4 bits for the table, 12 for the slot.
const BASE: u32 = 0x5753_0000;

/// The status of a slot.
pub(super) const fn code(table: u32, slot: usize) -> u32 {
    BASE | table << 12 | slot as u32
}

/// Every refused entry with its status.
pub(super) fn entries() -> impl Iterator<Item = (hsa_status_t, &'static str)> {
    table::refused().map(|(status, field)| (hsa_status_t(status), field.strip_suffix("_fn").unwrap_or(field)))
}

fn refuse(status: u32) -> hsa_status_t {
    let entry = entries().find(|(code, _)| code.0 == status).map_or("an entry", |(_, entry)| entry);
    tracing::warn!(entry, "not provided by the in-process runtime");
    hsa_status_t(status)
}

/// A function of this type that refuses with status `STATUS`.
pub(super) trait Refuse<const STATUS: u32> {
    const FUNCTION: Self;
}

macro_rules! refuse_with_arguments {
    ($($argument:ident)*) => {
        impl<const STATUS: u32, $($argument),*> Refuse<STATUS>
            for unsafe extern "C-unwind" fn($($argument),*) -> hsa_status_t
        {
            const FUNCTION: Self = {
                /// # Safety
                /// Any caller with any arguments: none is looked at.
                unsafe extern "C-unwind" fn refusing<const STATUS: u32, $($argument),*>(
                    $(_: $argument),*
                ) -> hsa_status_t {
                    refuse(STATUS)
                }
                refusing::<STATUS, $($argument),*>
            };
        }
    };
}

refuse_with_arguments!(A);
refuse_with_arguments!(A B);
refuse_with_arguments!(A B C);
refuse_with_arguments!(A B C D);
refuse_with_arguments!(A B C D E);
refuse_with_arguments!(A B C D E F);
refuse_with_arguments!(A B C D E F G);
refuse_with_arguments!(A B C D E F G H);
refuse_with_arguments!(A B C D E F G H I);
refuse_with_arguments!(A B C D E F G H I J);

/// Entries whose prototypes are not among the ABI facts. All of them return a status.
impl<const STATUS: u32> Refuse<STATUS> for unsafe extern "C-unwind" fn() {
    const FUNCTION: Self = {
        /// # Safety
        /// Any caller: nothing is looked at.
        unsafe extern "C-unwind" fn refusing<const STATUS: u32>() -> hsa_status_t {
            refuse(STATUS)
        }
        let function: unsafe extern "C-unwind" fn() -> hsa_status_t = refusing::<STATUS>;
        // SAFETY: function pointers have one size; Rust never calls this one ("copied and compared with null"). A C
        // caller reads the status from the register in which the function left it, and on x86-64 it is the caller
        // who removes arguments.
        unsafe { std::mem::transmute(function) }
    };
}

/// What the tool events of a runtime do that no tool has replaced.
///
/// # Safety
/// Any caller with any event: it is not looked at.
pub(super) unsafe extern "C-unwind" fn no_tool_event(_event: hsa_amd_tool_event_t) -> hsa_status_t {
    hsa_sys::HSA_STATUS_SUCCESS
}
