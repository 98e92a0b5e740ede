//! The real runtime's API table, for tests that drive our crates in their own process.

use std::ffi::c_void;
use std::sync::OnceLock;

use hsa_sys::loader::HsaRuntime;
use hsa_sys::{HSA_STATUS_SUCCESS, HsaApiTable};
use libloading::os::unix::{Library, RTLD_NOW};

use crate::Error;
use crate::machine::TOOL_VARIABLE;

/// Flag of `dlopen`: only if it is loaded already.
const RTLD_NOLOAD: i32 = 4;

/// Address of the table; the process holds one reference on the runtime from the first call on, so it stays valid.
static TABLE: OnceLock<usize> = OnceLock::new();

/// Initialises the real runtime, once and for the rest of the process, and returns the table that it handed to tools.
/// Only in programs started through
/// [`Machine::command_with_table`](crate::Machine::command_with_table), as [`rerun()`](crate::rerun()) does.
///
/// # Errors
/// [`Error::NoTable`] with what was missing.
pub fn runtime_table() -> Result<*const HsaApiTable, Error> {
    if let Some(&table) = TABLE.get() {
        return Ok(table as *const HsaApiTable);
    }
    let table = ask_tool()?;
    Ok(*TABLE.get_or_init(|| table as usize) as *const HsaApiTable)
}

fn ask_tool() -> Result<*const HsaApiTable, Error> {
    let missing = |what: String| Error::NoTable(what);
    let runtime = HsaRuntime::load().map_err(|error| missing(error.to_string()))?;
    // SAFETY: hsa_init has no preconditions.
    let status = unsafe { (runtime.hsa_init)() };
    if status != HSA_STATUS_SUCCESS {
        return Err(missing(format!("hsa_init returned {:#x}", status.0)));
    }
    let path =
        std::env::var_os(TOOL_VARIABLE).ok_or_else(|| missing(format!("{TOOL_VARIABLE} is not set")))?;
    // SAFETY: the library is loaded already (RTLD_NOLOAD), so no initialiser runs.
    let tool = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_NOLOAD) };
    let tool = tool.map_err(|_| missing("the runtime has not loaded the tool".into()))?;
    // SAFETY: the tool exports this function with this signature.
    let function = unsafe { tool.get::<extern "C" fn() -> *mut c_void>(b"wavescope_runtime_table\0") };
    let table = function.map_err(|error| missing(error.to_string()))?();
    if table.is_null() { Err(missing("the runtime gave the tool no table".into())) } else { Ok(table.cast()) }
}
