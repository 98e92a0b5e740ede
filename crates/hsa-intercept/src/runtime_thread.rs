//! Recognises the runtime's event thread, on which ROCr calls our write hook for whoever rang elsewhere: after a ring ran
//! over, and for doorbells that a device rang. What is submitted there, an unknown thread submitted.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use hsa_sys::{HSA_SIGNAL_CONDITION_LT, HSA_STATUS_SUCCESS};
use wavescope_hsa::{Hsa, HsaSignal};

use crate::thread_mark;

/// Whether that was done for one runtime.
#[derive(Debug, Default)]
pub(crate) struct Recognition(AtomicBool);

impl Recognition {
    /// Has the event thread mark itself, once: it runs the handlers of signals.
    pub(crate) fn begin(&self, hsa: &Hsa) {
        let handle_later = hsa.table().amd.hsa_amd_signal_async_handler_fn;
        let Some(handle_later) = handle_later.filter(|_| !self.0.swap(true, Ordering::Relaxed)) else {
            return;
        };
        // The condition holds already. A signal with an event, so that the thread which waits for events handles it.
        let Ok(signal) = HsaSignal::new(hsa, 0) else { return };
        // Never destroyed: nobody says when the event thread is done with it.
        let signal = signal.into_handle();
        let handler = Some(on_event_thread as unsafe extern "C-unwind" fn(i64, *mut c_void) -> bool);
        // SAFETY: the signal lives for good, and the handler needs no data.
        let status =
            unsafe { handle_later(signal, HSA_SIGNAL_CONDITION_LT, 1, handler, std::ptr::null_mut()) };
        if status != HSA_STATUS_SUCCESS {
            hsa.destroy_signal(signal);
            tracing::debug!(?status, "the runtime's event thread is not recognised");
        }
    }
}

unsafe extern "C-unwind" fn on_event_thread(_value: i64, _data: *mut c_void) -> bool {
    thread_mark::mark_internal();
    false
}
