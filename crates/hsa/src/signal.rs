//! Signals that we own.

use std::time::Duration;

use hsa_sys::{HSA_AMD_SIGNAL_AMD_GPU_ONLY, HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED, hsa_signal_t};
use wavescope_core::sync::Deadline;

use crate::Hsa;
use crate::error::{Error, check, entry};

/// An HSA signal, destroyed when dropped. Whoever puts it into a packet keeps it until the packet retired.
#[derive(Debug)]
pub struct HsaSignal {
    hsa: Hsa,
    handle: hsa_signal_t,
}

impl HsaSignal {
    /// A signal that host threads may wait for, blocked. It takes one of the driver's 4,096 events.
    ///
    /// # Errors
    /// [`Error::Call`], [`Error::MissingEntry`].
    pub fn new(hsa: &Hsa, initial: i64) -> Result<Self, Error> {
        let call = "hsa_signal_create";
        let create = entry(call, hsa.table().core.hsa_signal_create_fn)?;
        let mut handle = hsa_signal_t { handle: 0 };
        // SAFETY: no consumers are named, and `handle` outlives the call.
        let status = unsafe { create(initial, 0, std::ptr::null(), &raw mut handle) };
        check(call, status)?;
        Ok(Self { hsa: hsa.clone(), handle })
    }

    /// A signal that only packet processors wait for: it has no event.
    ///
    /// # Errors
    /// [`Error::Call`], [`Error::MissingEntry`].
    pub fn gpu_only(hsa: &Hsa, initial: i64) -> Result<Self, Error> {
        let call = "hsa_amd_signal_create";
        let create = entry(call, hsa.table().amd.hsa_amd_signal_create_fn)?;
        let attributes = u64::from(HSA_AMD_SIGNAL_AMD_GPU_ONLY.0);
        let mut handle = hsa_signal_t { handle: 0 };
        // SAFETY: no consumers are named, and `handle` outlives the call.
        let status = unsafe { create(initial, 0, std::ptr::null(), attributes, &raw mut handle) };
        check(call, status)?;
        Ok(Self { hsa: hsa.clone(), handle })
    }

    /// The handle, for packets.
    pub fn handle(&self) -> hsa_signal_t {
        self.handle
    }

    /// Gives up ownership: nobody destroys the signal any more.
    pub fn into_handle(self) -> hsa_signal_t {
        let handle = self.handle;
        std::mem::forget(self);
        handle
    }

    /// The value, with acquire order.
    pub fn load(&self) -> i64 {
        self.hsa.signal_load(self.handle)
    }

    /// Sets the value, with release order.
    pub fn store(&self, value: i64) {
        self.hsa.signal_store(self.handle, value);
    }

    /// Waits, blocked, until the value is less than `below`.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::MissingEntry`].
    pub fn wait_below(&self, below: i64, timeout: Duration) -> Result<(), Error> {
        let value = self.hsa.signal_wait_below(self.handle, below, timeout)?;
        if value < below {
            return Ok(());
        }
        Err(Error::TimedOut { signal: self.handle.handle, value, waited: timeout })
    }
}

impl Drop for HsaSignal {
    fn drop(&mut self) {
        self.hsa.destroy_signal(self.handle);
    }
}

impl Hsa {
    /// The value of a signal, with acquire order; 0 if the runtime cannot say.
    pub fn signal_load(&self, signal: hsa_signal_t) -> i64 {
        let Some(load) = self.table().core.hsa_signal_load_scacquire_fn else { return 0 };
        // SAFETY: a handle is only made by the runtime; who passes it here keeps it alive.
        unsafe { load(signal) }
    }

    /// Sets a signal, with release order.
    pub fn signal_store(&self, signal: hsa_signal_t, value: i64) {
        let Some(store) = self.table().core.hsa_signal_store_screlease_fn else { return };
        // SAFETY: as in `signal_load`.
        unsafe { store(signal, value) };
    }

    /// Destroys a signal whose ownership was given up with [`HsaSignal::into_handle`].
    pub fn destroy_signal(&self, signal: hsa_signal_t) {
        let Some(destroy) = self.table().core.hsa_signal_destroy_fn else { return };
        // SAFETY: the caller owned the signal and no packet in flight names it.
        let status = unsafe { destroy(signal) };
        if let Err(error) = check("hsa_signal_destroy", status) {
            tracing::warn!(%error, signal = signal.handle, "signal not destroyed");
        }
    }

    /// Subtracts from a signal, with release order.
    pub fn signal_subtract(&self, signal: hsa_signal_t, by: i64) {
        let Some(subtract) = self.table().core.hsa_signal_subtract_screlease_fn else { return };
        // SAFETY: as in `signal_load`.
        unsafe { subtract(signal, by) };
    }

    /// Waits, blocked, until the value of a signal is less than `below` or `timeout` passed. Returns the last value seen.
    ///
    /// # Errors
    /// [`Error::MissingEntry`].
    pub fn signal_wait_below(
        &self,
        signal: hsa_signal_t,
        below: i64,
        timeout: Duration,
    ) -> Result<i64, Error> {
        let wait = entry("hsa_signal_wait_scacquire", self.table().core.hsa_signal_wait_scacquire_fn)?;
        let deadline = Deadline::after(timeout);
        loop {
            let left = deadline.left();
            let hint = self.timeout_ticks(left);
            // SAFETY: as in `signal_load`.
            let value = unsafe { wait(signal, HSA_SIGNAL_CONDITION_LT, below, hint, HSA_WAIT_STATE_BLOCKED) };
            if value < below || left.is_zero() {
                return Ok(value);
            }
        }
    }

    /// A time limit in the unit of the runtime's timeout hints.
    fn timeout_ticks(&self, timeout: Duration) -> u64 {
        self.ns_to_ticks(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }
}
