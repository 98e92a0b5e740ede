//! Copies out of device memory by a copy engine.
//!
//! `hsa_memory_copy` is no way to read results: ROCr does it by a kernel on the agent's compute units, which counters of
//! a dispatch running at the same time see.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::Duration;

use hsa_sys::hsa_agent_t;
use wavescope_core::AgentId;

use crate::error::{Error, check, entry};
use crate::{Hsa, HsaSignal, Memory, MemoryKind};

/// Copied at a time, by way of host memory that the engine can reach.
const PIECE: usize = 4 << 20;

/// An engine needs milliseconds for a piece; one that is silent for so long is broken.
const LIMIT: Duration = Duration::from_secs(60);

/// Copies `into.len()` bytes from `source` on, which is memory of `agent`.
///
/// # Safety
/// The range lies in a living allocation of the runtime.
///
/// # Errors
/// [`Error::NoAgent`], [`Error::NoPool`], [`Error::Call`], [`Error::MissingEntry`], [`Error::TimedOut`].
pub(crate) unsafe fn copy_from_device(
    hsa: &Hsa,
    agent: AgentId,
    source: NonNull<c_void>,
    into: &mut [u8],
) -> Result<(), Error> {
    if into.is_empty() {
        return Ok(());
    }
    let no_host = Error::NoPool { agent, kind: "fine-grained host" };
    let (host, gpu) = (*hsa.cpus().first().ok_or(no_host)?, hsa.gpu(agent)?.handle);
    let staging = Memory::allocate(hsa, agent, MemoryKind::Host, into.len().min(PIECE))?;
    let done = HsaSignal::new(hsa, 0)?;
    for (index, piece) in into.chunks_mut(PIECE).enumerate() {
        let source = source.as_ptr().wrapping_byte_add(index * PIECE);
        done.store(1);
        // SAFETY: the source by this function's contract; the staging memory has the bytes of a piece, and it and the
        // signal stay until the copy ended.
        unsafe { start(hsa, (staging.address(), host), (source, gpu), piece.len(), &done) }?;
        if let Err(error) = done.wait_below(1, LIMIT) {
            staging.leak();
            std::mem::forget(done);
            return Err(error);
        }
        staging.load(0, piece)?;
    }
    Ok(())
}

/// # Safety
/// Both ranges have `bytes` bytes, and they and the signal are there until it falls.
unsafe fn start(
    hsa: &Hsa,
    (target, target_agent): (NonNull<c_void>, hsa_agent_t),
    (source, source_agent): (*mut c_void, hsa_agent_t),
    bytes: usize,
    done: &HsaSignal,
) -> Result<(), Error> {
    let call = "hsa_amd_memory_async_copy";
    let copy = entry(call, hsa.table().amd.hsa_amd_memory_async_copy_fn)?;
    let (target, no_signals) = (target.as_ptr(), std::ptr::null());
    // SAFETY: by this function's contract; the agents are the runtime's.
    let status =
        unsafe { copy(target, target_agent, source, source_agent, bytes, 0, no_signals, done.handle()) };
    check(call, status)
}
