//! Recognises the runtime's event thread, on which ROCr calls our write hook for whoever rang elsewhere: after a ring ran
//! over, and for doorbells that a device rang. What is submitted there, an unknown thread submitted.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use hsa_sys::{HSA_SIGNAL_CONDITION_LT, HSA_STATUS_SUCCESS, hsa_signal_t};
use wavescope_core::sync::Mutex;
use wavescope_hsa::{Hsa, HsaSignal};

use crate::thread_mark;

/// Whether that was done for one runtime.
#[derive(Debug, Default)]
pub(crate) struct Recognition {
    begun: AtomicBool,
    /// The signal, and whether its handler has run.
    handled: Mutex<Option<(hsa_signal_t, &'static AtomicBool)>>,
}

impl Recognition {
    /// Has the event thread mark itself, once: it runs the handlers of signals.
    pub(crate) fn begin(&self, hsa: &Hsa) {
        let handle_later = hsa.table().amd.hsa_amd_signal_async_handler_fn;
        let Some(handle_later) = handle_later.filter(|_| !self.begun.swap(true, Ordering::Relaxed)) else {
            return;
        };
        // The condition holds already. A signal with an event, so that the thread which waits for events handles it.
        let Ok(signal) = HsaSignal::new(hsa, 0) else { return };
        let signal = signal.into_handle();
        let handler = Some(on_event_thread as unsafe extern "C-unwind" fn(i64, *mut c_void) -> bool);
        let has_run: &'static AtomicBool = Box::leak(Box::default());
        let data = std::ptr::from_ref(has_run).cast_mut().cast();
        // SAFETY: the signal lives until the handler has run, its data for good.
        let status = unsafe { handle_later(signal, HSA_SIGNAL_CONDITION_LT, 1, handler, data) };
        if status == HSA_STATUS_SUCCESS {
            *self.handled.lock() = Some((signal, has_run));
        }
        if status != HSA_STATUS_SUCCESS {
            hsa.destroy_signal(signal);
            tracing::debug!(?status, "the runtime's event thread is not recognised");
        }
    }
}

impl Recognition {
    /// Destroys the signal if its handler has run; else it stays for good. The runtime holds its own reference until the
    /// event thread has taken the handler off.
    pub(crate) fn let_go(&self, hsa: &Hsa) {
        let handled = self.handled.lock().take_if(|(_, has_run)| has_run.load(Ordering::Acquire));
        if let Some((signal, _)) = handled {
            hsa.destroy_signal(signal);
        }
    }
}

unsafe extern "C-unwind" fn on_event_thread(_value: i64, data: *mut c_void) -> bool {
    thread_mark::mark_internal();
    // SAFETY: the flag that `begin` leaked.
    if let Some(has_run) = unsafe { data.cast::<AtomicBool>().as_ref() } {
        has_run.store(true, Ordering::Release);
    }
    false
}
