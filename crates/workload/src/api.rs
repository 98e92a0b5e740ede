//! Calls through the table, as it is at the moment of each call.

use std::ffi::CStr;

use hsa_sys::{HSA_STATUS_SUCCESS, HsaApiTable, hsa_status_t};

use crate::Error;

/// The table, valid for as long as any clone of this lives ([`Application::open`](crate::Application::open)).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Api {
    table: *const HsaApiTable,
}

// SAFETY: the table may be read from any thread; whoever replaces entries keeps HSA's rule that nobody calls meanwhile.
unsafe impl Send for Api {}
// SAFETY: as for `Send`.
unsafe impl Sync for Api {}

/// Calls an entry that returns a status; the arguments must satisfy the function's own rules.
macro_rules! call {
    ($api:expr, $part:ident.$entry:ident($($argument:expr),* $(,)?)) => {{
        let api: $crate::api::Api = $api;
        match $crate::api::entry!(api, $part.$entry) {
            Ok(function) => {
                // SAFETY: the entry has this type in every table, and the arguments are handles and pointers that
                // their owners in this crate keep alive for the call.
                let status = unsafe { function($($argument),*) };
                api.check(stringify!($entry), status)
            }
            Err(missing) => Err(missing),
        }
    }};
}

/// The function of an entry, or which one is missing.
macro_rules! entry {
    ($api:expr, $part:ident.$entry:ident) => {{
        let api: $crate::api::Api = $api;
        let tables = api.tables();
        // SAFETY: the parts of a table live as long as it does; an entry is one aligned word.
        let function = unsafe { (*tables.$part).$entry };
        function.ok_or($crate::Error::Missing { call: stringify!($entry).trim_end_matches("_fn") })
    }};
}

pub(crate) use {call, entry};

impl Api {
    /// # Safety
    /// `table` is null or a runtime's table that outlives every copy of the value, with the parts `core_` and
    /// `amd_ext_` present.
    pub(crate) unsafe fn new(table: *const HsaApiTable) -> Result<Self, Error> {
        if table.is_null() { Err(Error::NoTable) } else { Ok(Self { table }) }
    }

    pub(crate) fn tables(&self) -> &HsaApiTable {
        // SAFETY: not null and alive by the contract of `new`; the root is not written after it was handed out.
        unsafe { &*self.table }
    }

    /// Turns a status into a result.
    pub(crate) fn check(self, entry: &'static str, status: hsa_status_t) -> Result<(), Error> {
        if status == HSA_STATUS_SUCCESS {
            return Ok(());
        }
        let call = entry.trim_end_matches("_fn");
        Err(Error::Call { call, status, text: self.status_text(status) })
    }

    fn status_text(self, status: hsa_status_t) -> Option<String> {
        let function = entry!(self, core_.hsa_status_string_fn).ok()?;
        let mut text = std::ptr::null();
        // SAFETY: any status may be asked for; the result is written to a live pointer.
        let found = unsafe { function(status, &raw mut text) };
        if found != HSA_STATUS_SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: on success the runtime gave a terminated string that lives as long as the runtime.
        unsafe { CStr::from_ptr(text) }.to_str().ok().map(str::to_owned)
    }
}
