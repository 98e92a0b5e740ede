//! What the library's callbacks reach: the caller's memory, and whoever takes values or data.
//!
//! No panic may unwind into the library, whose own handlers would end the process: each callback catches it and
//! answers an error.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hsa_sys::{
    aqlprofile_att_data_callback_t, aqlprofile_buffer_desc_flags_t, aqlprofile_memory_alloc_callback_t,
    aqlprofile_memory_copy_t, aqlprofile_memory_dealloc_callback_t, aqlprofile_pmc_data_callback_t,
    aqlprofile_pmc_event_t, hsa_status_t,
};

use crate::error::Error;
use crate::memory::{AllocationRequest, BufferFlags, Memory};
use crate::status::Status;

const SUCCESS: hsa_status_t = hsa_status_t(0);
const ERROR: hsa_status_t = hsa_status_t(Status::ERROR.0);

/// The caller's memory as one packet set uses it.
///
/// The library keeps a pointer to it as long as the set lives, and for ever when creating one fails: it then owns a
/// set that nobody can delete, and gives its memory back when the process exits.
pub(super) struct Session {
    memory: Arc<dyn Memory>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order of the requests. Freed ones stay, with address 0.
    allocations: Vec<(u64, AllocationRequest)>,
    /// The first refusal, for the error message.
    refused: Option<(AllocationRequest, Status)>,
    /// Whether the memory was given back without the library.
    abandoned: bool,
}

type Callbacks =
    (aqlprofile_memory_alloc_callback_t, aqlprofile_memory_dealloc_callback_t, aqlprofile_memory_copy_t);

impl Session {
    /// What is passed to the library together with [`Session::as_user_data`].
    pub(super) const CALLBACKS: Callbacks = (Some(allocate), Some(free), Some(copy));

    /// A session on `memory`.
    pub(super) fn new(memory: &Arc<dyn Memory>) -> Arc<Self> {
        Arc::new(Self { memory: Arc::clone(memory), state: Mutex::default() })
    }

    /// The pointer that the callbacks take. It is good as long as the session lives.
    pub(super) fn as_user_data(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// The memory.
    pub(super) fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    /// Address and size of an allocation, by the order of the requests.
    pub(super) fn allocation(&self, index: usize) -> (u64, u64) {
        let state = self.state();
        state.allocations.get(index).map_or((0, 0), |(address, request)| (*address, request.bytes))
    }

    /// After a failed creation: gives all memory back, keeps the session for ever (the library still points to
    /// it), and tells a refused allocation from other failures.
    pub(super) fn abandon(self: Arc<Self>, error: Error) -> Error {
        let mut state = self.state();
        state.abandoned = true;
        for (address, _) in std::mem::take(&mut state.allocations) {
            self.memory.free(address);
        }
        let refused = state.refused;
        drop(state);
        let _kept = Arc::into_raw(self);
        match refused {
            Some((request, status)) => Error::Allocation { request, status },
            None => error,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let made = self.memory.allocate(request);
        let mut state = self.state();
        match made {
            Ok(address) => state.allocations.push((address, request)),
            Err(status) => state.refused = Some((request, status)),
        }
        made
    }

    fn free(&self, address: u64) {
        let mut state = self.state();
        if state.abandoned {
            return;
        }
        if let Some(found) = state.allocations.iter_mut().find(|(at, _)| *at == address) {
            found.0 = 0;
        }
        drop(state);
        self.memory.free(address);
    }

    /// Whether a range lies in one of the session's buffers.
    fn owns(&self, address: u64, bytes: u64) -> bool {
        let inside = |&(at, request): &(u64, AllocationRequest)| {
            at != 0 && address >= at && address - at + bytes <= request.bytes
        };
        self.state().allocations.iter().any(inside)
    }
}

/// Runs a callback's body on the session that `user_data` is.
///
/// # Safety
/// `user_data` is a living session's.
unsafe fn with_session(user_data: *mut c_void, body: impl FnOnce(&Session) -> hsa_status_t) -> hsa_status_t {
    // SAFETY: the caller vouches that a session is there; it is only ever shared.
    let session = unsafe { &*user_data.cast::<Session>() };
    catch_unwind(AssertUnwindSafe(|| body(session))).unwrap_or(ERROR)
}

/// The library's allocation callback.
///
/// # Safety
/// `out` may be written, and `user_data` is a living session's.
unsafe extern "C-unwind" fn allocate(
    out: *mut *mut c_void,
    size: u64,
    flags: aqlprofile_buffer_desc_flags_t,
    user_data: *mut c_void,
) -> hsa_status_t {
    let request = AllocationRequest { bytes: size, flags: BufferFlags(flags.raw) };
    let body = |session: &Session| match session.allocate(request) {
        Ok(address) => {
            // SAFETY: the library passes a pointer to a pointer of its own to fill.
            unsafe { out.write(std::ptr::with_exposed_provenance_mut(address as usize)) };
            SUCCESS
        }
        Err(status) => hsa_status_t(status.0),
    };
    // SAFETY: the library passes the session on that it was given with this function.
    unsafe { with_session(user_data, body) }
}

/// The library's callback that frees.
///
/// # Safety
/// `user_data` is a living session's.
unsafe extern "C-unwind" fn free(address: *mut c_void, user_data: *mut c_void) {
    let body = |session: &Session| {
        session.free(address as u64);
        SUCCESS
    };
    // SAFETY: the library passes the session on that it was given with this function.
    let _nobody_asks = unsafe { with_session(user_data, body) };
}

/// The library's callback that copies, in either direction.
///
/// # Safety
/// `user_data` is a living session's; of `to` and `from`, the one outside its memory has `size` bytes.
unsafe extern "C-unwind" fn copy(
    to: *mut c_void,
    from: *const c_void,
    size: usize,
    user_data: *mut c_void,
) -> hsa_status_t {
    let body = |session: &Session| {
        if size == 0 {
            return SUCCESS;
        }
        if session.owns(to as u64, size as u64) {
            // SAFETY: the library copies commands of `size` bytes out of a host buffer of its own.
            let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), size) };
            session.memory.copy_in(to as u64, bytes);
        } else if session.owns(from as u64, size as u64) {
            // SAFETY: the library copies trace data into a host buffer of its own that holds `size` bytes, which
            // it has zeroed.
            let bytes = unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), size) };
            session.memory.copy_out(from as u64, bytes);
        } else {
            return ERROR;
        }
        SUCCESS
    };
    // SAFETY: the library passes the session on that it was given with this function.
    unsafe { with_session(user_data, body) }
}

/// Takes a counter set's values: counter id and value, answering how to go on.
pub(super) struct ValueSink<'a>(pub(super) &'a mut dyn FnMut(u64, u64) -> Status);

impl ValueSink<'_> {
    /// What is passed to the library together with [`ValueSink::as_user_data`].
    pub(super) const CALLBACK: aqlprofile_pmc_data_callback_t = Some(value);

    /// The pointer that the callback takes, good while the sink is borrowed.
    pub(super) fn as_user_data(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }
}

/// The library's callback for a counter's value.
///
/// # Safety
/// `user_data` is a living [`ValueSink`] that nobody else uses.
unsafe extern "C-unwind" fn value(
    _event: aqlprofile_pmc_event_t,
    counter_id: u64,
    value: u64,
    user_data: *mut c_void,
) -> hsa_status_t {
    // SAFETY: the library passes the sink on that it was given with this function, on the same thread, while the
    // sink is borrowed for the call.
    let sink = unsafe { &mut *user_data.cast::<ValueSink<'_>>() };
    let answer = catch_unwind(AssertUnwindSafe(|| (sink.0)(counter_id, value)));
    hsa_status_t(answer.unwrap_or(Status::ERROR).0)
}

/// Takes a trace's data, engine by engine.
pub(super) struct TraceSink<'a>(pub(super) &'a mut dyn FnMut(u32, &[u8]));

impl TraceSink<'_> {
    /// What is passed to the library together with [`TraceSink::as_user_data`].
    pub(super) const CALLBACK: aqlprofile_att_data_callback_t = Some(data);

    /// The pointer that the callback takes, good while the sink is borrowed.
    pub(super) fn as_user_data(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }
}

/// The library's callback for an engine's data.
///
/// # Safety
/// `user_data` is a living [`TraceSink`] that nobody else uses, and `bytes` has `size` bytes.
unsafe extern "C-unwind" fn data(
    se: u32,
    bytes: *mut c_void,
    size: u64,
    user_data: *mut c_void,
) -> hsa_status_t {
    // SAFETY: as for values.
    let sink = unsafe { &mut *user_data.cast::<TraceSink<'_>>() };
    let bytes = if size == 0 {
        &[][..]
    } else {
        // SAFETY: the library passes a buffer of its own that holds `size` bytes, copied out of the trace.
        unsafe { slice::from_raw_parts(bytes.cast::<u8>(), size as usize) }
    };
    match catch_unwind(AssertUnwindSafe(|| (sink.0)(se, bytes))) {
        Ok(()) => SUCCESS,
        Err(_) => ERROR,
    }
}
