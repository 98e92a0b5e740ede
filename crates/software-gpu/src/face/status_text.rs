//! Texts for statuses, among them one per entry that this runtime does not provide.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::LazyLock;

use hsa_sys::hsa_status_t;

use super::refused;

static TEXTS: LazyLock<HashMap<u32, CString>> = LazyLock::new(|| {
    refused::entries()
        .filter_map(|(status, entry)| {
            let text = format!("{entry} is not provided by the in-process runtime");
            Some((status.0, CString::new(text).ok()?))
        })
        .collect()
});

/// The text of a status; `None` for a number that is none.
pub(super) fn of(status: hsa_status_t) -> Option<&'static CStr> {
    if let Some(text) = TEXTS.get(&status.0) {
        return Some(text);
    }
    status.name()?;
    static NAMES: std::sync::Mutex<Vec<(u32, &'static CStr)>> = std::sync::Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(&(_, text)) = names.iter().find(|(code, _)| *code == status.0) {
        return Some(text);
    }
    // Leaked once per status: callers keep the pointer for as long as they like.
    let text: &'static CStr = Box::leak(CString::new(status.name()?).ok()?.into_boxed_c_str());
    names.push((status.0, text));
    Some(text)
}
