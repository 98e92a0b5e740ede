//! Tools: libraries that get the table at the end of `hsa_init`, as ROCr loads them (`runtime.cpp`, LoadTools and
//! UnloadTools in ROCm/rocm-systems).

use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

use hsa_sys::HsaApiTable;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use super::options::Tools;
use super::table;

/// Names separated by spaces; double quotes group.
const TOOLS_VARIABLE: &str = "HSA_TOOLS_LIB";
/// `1` prints why a tool did not load.
const REPORT_VARIABLE: &str = "HSA_TOOLS_REPORT_LOAD_FAILURE";

/// The version that ROCr 7.2.4 tells its tools.
const RUNTIME_VERSION: u64 = 3;

type OnLoad = unsafe extern "C-unwind" fn(
    table: *mut HsaApiTable,
    runtime_version: u64,
    failed_tool_count: u64,
    failed_tool_names: *const *const c_char,
) -> bool;
type OnUnload = unsafe extern "C-unwind" fn();

static LOADED: Mutex<Vec<Library>> = Mutex::new(Vec::new());

/// Loads the tools and hands each the table, in order; each gets the names of those that failed before it.
pub(super) fn load(tools: &Tools) {
    if *tools == Tools::None {
        return;
    }
    let Ok(names) = std::env::var(TOOLS_VARIABLE) else { return };
    let mut failed: Vec<CString> = Vec::new();
    for name in split_names(&names) {
        match load_one(&name, &failed) {
            Ok(library) => LOADED.lock().unwrap_or_else(PoisonError::into_inner).push(library),
            Err(reason) => {
                report(&name, &reason);
                failed.extend(CString::new(name));
            }
        }
    }
}

/// Tells the tools that the runtime ends and gives them back their table as it was. Libraries stay in memory, as
/// their hooks may be running.
pub(super) fn unload() {
    let tools = std::mem::take(&mut *LOADED.lock().unwrap_or_else(PoisonError::into_inner));
    for tool in tools.into_iter().rev() {
        // SAFETY: a tool's `OnUnload` takes and returns nothing (hsa_api_trace.h).
        if let Ok(on_unload) = unsafe { tool.get::<OnUnload>(b"OnUnload\0") } {
            // SAFETY: the tool was loaded before, and is told once.
            unsafe { on_unload() };
        }
        std::mem::forget(tool);
    }
    table::reset();
}

fn load_one(name: &str, failed: &[CString]) -> Result<Library, String> {
    // SAFETY: running a tool's initialisers is what the user asked for by naming it.
    let library =
        unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }.map_err(|error| error.to_string())?;
    let names: Vec<_> = failed.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: the symbol has this type in every tool (hsa_api_trace.h).
    let on_load = unsafe { library.get::<OnLoad>(b"OnLoad\0") }.map_err(|error| error.to_string())?;
    // SAFETY: the table lives for ever; the names live until the call returns.
    let accepted = unsafe { on_load(table::table(), RUNTIME_VERSION, names.len() as u64, names.as_ptr()) };
    if accepted { Ok(library) } else { Err("OnLoad returned false".to_owned()) }
}

fn report(name: &str, reason: &str) {
    tracing::warn!(tool = name, reason, "tool not loaded");
    if std::env::var(REPORT_VARIABLE).is_ok_and(|value| value == "1") {
        eprintln!("Tool lib \"{name}\" failed to load: {reason}");
    }
}

fn split_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => names.push(std::mem::take(&mut name)),
            c => name.push(c),
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_spaces_outside_quotes() {
        assert_eq!(split_names(r#"liba.so  "/my tools/b.so" c"#), ["liba.so", "/my tools/b.so", "c"]);
        assert!(split_names("  ").is_empty());
    }
}
