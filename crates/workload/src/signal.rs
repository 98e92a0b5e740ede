//! A signal of the application.

use std::sync::Arc;
use std::time::Duration;

use hsa_sys::{HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED, hsa_signal_t};

use crate::Error;
use crate::api::{call, entry};
use crate::application::Reference;

/// A signal, destroyed when dropped: nothing in flight may name it any more.
#[derive(Debug)]
pub struct Signal {
    reference: Arc<Reference>,
    handle: hsa_signal_t,
}

impl Signal {
    pub(crate) fn create(reference: &Arc<Reference>, value: i64) -> Result<Self, Error> {
        let mut handle = hsa_signal_t::zeroed();
        call!(reference.api, core_.hsa_signal_create_fn(value, 0, std::ptr::null(), &raw mut handle))?;
        Ok(Self { reference: Arc::clone(reference), handle })
    }

    /// Its handle.
    pub fn handle(&self) -> hsa_signal_t {
        self.handle
    }

    /// The value, with acquire order.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn load(&self) -> Result<i64, Error> {
        let load = entry!(self.reference.api, core_.hsa_signal_load_scacquire_fn)?;
        // SAFETY: the signal lives as long as `self`.
        Ok(unsafe { load(self.handle) })
    }

    /// Sets the value, with release order.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn store(&self, value: i64) -> Result<(), Error> {
        let store = entry!(self.reference.api, core_.hsa_signal_store_screlease_fn)?;
        // SAFETY: the signal lives as long as `self`.
        unsafe { store(self.handle, value) };
        Ok(())
    }

    /// Waits until the value is below `limit` and returns it.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if it is not in time.
    pub fn wait_below(&self, limit: i64, timeout: Duration) -> Result<i64, Error> {
        let wait = entry!(self.reference.api, core_.hsa_signal_wait_scacquire_fn)?;
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let (condition, state) = (HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED);
        // SAFETY: the signal lives as long as `self`.
        let value = unsafe { wait(self.handle, condition, limit, nanoseconds, state) };
        if value < limit {
            return Ok(value);
        }
        Err(Error::TimedOut { what: format!("a signal is {value}, not below {limit}"), after: timeout })
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if let Err(error) = call!(self.reference.api, core_.hsa_signal_destroy_fn(self.handle)) {
            tracing::warn!(%error, "signal not destroyed");
        }
    }
}
