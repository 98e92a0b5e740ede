//! The saved copy of the runtime's tables, taken before any entry is replaced.
//!
//! A table begins with its version; `minor_id` is the size in bytes with which the runtime was built
//! (`hsa_api_trace.h`). Only that many bytes are copied, so an entry that an older runtime does not have is null here.

use hsa_sys::{
    AmdExtTable, ApiTableVersion, CoreApiTable, HSA_AMD_EXT_API_TABLE_MAJOR_VERSION,
    HSA_API_TABLE_MAJOR_VERSION, HSA_CORE_API_TABLE_MAJOR_VERSION, HsaApiTable,
};

use crate::Error;

/// The entries that existed when the table was handed over.
#[derive(Clone, Debug)]
pub struct SavedTable {
    /// The core functions.
    pub core: CoreApiTable,
    /// The AMD extension's functions.
    pub amd: AmdExtTable,
}

/// A table of function pointers behind a version.
///
/// # Safety
/// The type is `repr(C)`, begins with an [`ApiTableVersion`], and all-zero bytes behind it are a value.
unsafe trait Table: Copy {
    const NAME: &'static str;
    const MAJOR: u32;
    fn empty() -> Self;
}

// SAFETY: generated `repr(C)` struct: version first, then optional function pointers.
unsafe impl Table for CoreApiTable {
    const NAME: &'static str = "core";
    const MAJOR: u32 = HSA_CORE_API_TABLE_MAJOR_VERSION;
    fn empty() -> Self {
        Self::zeroed()
    }
}

// SAFETY: as for `CoreApiTable`.
unsafe impl Table for AmdExtTable {
    const NAME: &'static str = "AMD extension";
    const MAJOR: u32 = HSA_AMD_EXT_API_TABLE_MAJOR_VERSION;
    fn empty() -> Self {
        Self::zeroed()
    }
}

impl SavedTable {
    /// Copies what the runtime handed over.
    ///
    /// # Safety
    /// `table` is null or points to the table that a runtime hands to tools, whose parts it points to are live and
    /// not written meanwhile.
    ///
    /// # Errors
    /// [`Error::NullTable`] or [`Error::UnknownVersion`]; nothing was touched.
    pub unsafe fn copy(table: *const HsaApiTable) -> Result<Self, Error> {
        // SAFETY: null or valid by this function's contract.
        let table = unsafe { table.as_ref() }.ok_or(Error::NullTable { table: "API" })?;
        known("API", table.version, HSA_API_TABLE_MAJOR_VERSION)?;
        // SAFETY: the parts are null or live by this function's contract.
        let core = unsafe { copy_part(table.core_) }?;
        // SAFETY: likewise.
        let amd = unsafe { copy_part(table.amd_ext_) }?;
        Ok(Self { core, amd })
    }
}

fn known(table: &'static str, version: ApiTableVersion, known: u32) -> Result<(), Error> {
    if version.major_id == known {
        return Ok(());
    }
    Err(Error::UnknownVersion { table, found: version.major_id, known })
}

/// # Safety
/// `part` is null or points to a live table of at least `minor_id` bytes.
unsafe fn copy_part<T: Table>(part: *const T) -> Result<T, Error> {
    if part.is_null() {
        return Err(Error::NullTable { table: T::NAME });
    }
    // SAFETY: not null, and every table begins with its version.
    let version = unsafe { part.cast::<ApiTableVersion>().read() };
    known(T::NAME, version, T::MAJOR)?;
    let bytes = (version.minor_id as usize).min(size_of::<T>());
    let mut copy = T::empty();
    // SAFETY: the source has `minor_id` bytes, the destination `size_of::<T>()`; `bytes` exceeds neither. A slot
    // that is cut is a whole slot or none, since sizes and offsets are multiples of 8.
    unsafe { part.cast::<u8>().copy_to_nonoverlapping((&raw mut copy).cast(), bytes / 8 * 8) };
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major_id: u32, minor_id: usize) -> ApiTableVersion {
        ApiTableVersion { major_id, minor_id: minor_id as u32, step_id: 0, reserved: 0 }
    }

    unsafe extern "C-unwind" fn init() -> hsa_sys::hsa_status_t {
        hsa_sys::HSA_STATUS_SUCCESS
    }

    fn tables() -> (CoreApiTable, AmdExtTable) {
        let mut core = CoreApiTable::zeroed();
        core.version = version(2, size_of::<CoreApiTable>());
        core.hsa_init_fn = Some(init);
        core.hsa_shut_down_fn = Some(init);
        let mut amd = AmdExtTable::zeroed();
        amd.version = version(2, size_of::<AmdExtTable>());
        (core, amd)
    }

    fn save(major: u32, core: &mut CoreApiTable, amd: &mut AmdExtTable) -> Result<SavedTable, Error> {
        let mut table = HsaApiTable::zeroed();
        table.version = version(major, size_of::<HsaApiTable>());
        (table.core_, table.amd_ext_) = (core, amd);
        // SAFETY: the parts live until the end of this function.
        unsafe { SavedTable::copy(&table) }
    }

    // The size of an older runtime's table ends in the middle of ours: offset 24 is hsa_shut_down (slot 1).
    #[test]
    fn entries_behind_the_runtimes_own_size_are_not_read() {
        let (mut core, mut amd) = tables();
        core.version.minor_id = 24;
        let saved = save(3, &mut core, &mut amd).unwrap();
        assert!(saved.core.hsa_init_fn.is_some());
        assert!(saved.core.hsa_shut_down_fn.is_none(), "slot 1 ends at byte 32");
    }

    #[test]
    fn unknown_major_versions_are_refused() {
        let (mut core, mut amd) = tables();
        assert!(matches!(
            save(4, &mut core, &mut amd),
            Err(Error::UnknownVersion { table: "API", found: 4, known: 3 })
        ));
        amd.version.major_id = 1;
        assert!(matches!(
            save(3, &mut core, &mut amd),
            Err(Error::UnknownVersion { table: "AMD extension", found: 1, known: 2 })
        ));
    }

    #[test]
    fn null_tables_are_refused() {
        // SAFETY: null is allowed.
        let saved = unsafe { SavedTable::copy(std::ptr::null()) };
        assert!(matches!(saved, Err(Error::NullTable { table: "API" })));
    }
}
