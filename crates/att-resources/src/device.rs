//! What the owner needs of a GPU: the seam to the runtime.
//!
//! [`HsaDevice`](crate::HsaDevice) is the real one; tests and models use scripted ones. An implementation
//! validates nothing: the owner decides what is legal, and it is the only caller.

use wavescope_core::AqlPacket;
use wavescope_core::actor::Address;

use crate::BufferId;
use crate::owner::{DeviceEvent, Message, SubmissionId};

/// Why the runtime refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A call failed.
    #[error("{call} returned {status:#x}")]
    Call {
        /// Name of the call.
        call: &'static str,
        /// Its raw status.
        status: u32,
    },
    /// The safe layer over the runtime refused or was refused.
    #[error(transparent)]
    Hsa(#[from] wavescope_hsa::Error),
    /// An address outside every buffer.
    #[error("no trace buffer holds {length} bytes at {address:#x}")]
    NoBuffer {
        /// Where the range begins.
        address: u64,
        /// Its bytes.
        length: usize,
    },
    /// A submission without a thread that could wait for it, or whose completion nobody watches any more.
    #[error("nobody waits for the submission")]
    Unwatched,
}

/// A GPU agent, as far as its trace owner calls it. All calls come from the owner, one at a time.
pub trait Device: Send {
    /// Creates the one submission queue, of `packets` packets.
    ///
    /// # Errors
    /// What the runtime says.
    fn create_queue(&mut self, packets: usize) -> Result<(), DeviceError>;

    /// Destroys the submission queue: the GPU executes nothing of it any more when this returns.
    fn destroy_queue(&mut self);

    /// Allocates GPU memory (output) or host memory (staging) that the agent can access.
    ///
    /// # Errors
    /// What the runtime says; out of memory among others.
    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<u64, DeviceError>;

    /// Frees what [`allocate`](Self::allocate) returned for `buffer`.
    fn free(&mut self, buffer: BufferId, address: u64);

    /// Keeps an allocation for good: the GPU may still write it.
    fn leak(&mut self, buffer: BufferId, address: u64);

    /// Enqueues `packets` on the submission queue and returns. `done` is told when the last one retired.
    ///
    /// # Errors
    /// What the runtime says; nothing was enqueued then.
    fn submit(&mut self, packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError>;
}

/// Reads the owner's buffers, on the copy workers' threads.
pub trait SlotReader: Send + Sync {
    /// Copies `into.len()` bytes of a buffer out, from `address` on.
    ///
    /// # Errors
    /// [`DeviceError::NoBuffer`] outside every buffer, or what the runtime says.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError>;
}

/// Tells the owner how a submission ended, once. Dropping it says that nobody will know.
pub struct Completion {
    owner: Option<Address<Message>>,
    submission: SubmissionId,
}

impl Completion {
    pub(crate) fn new(owner: Address<Message>, submission: SubmissionId) -> Self {
        Self { owner: Some(owner), submission }
    }

    /// The last packet retired, or the runtime reported an error. Never waits.
    pub fn finish(mut self, result: Result<(), DeviceError>) {
        self.tell(result);
    }

    fn tell(&mut self, result: Result<(), DeviceError>) {
        let Some(owner) = self.owner.take() else { return };
        let event = DeviceEvent::SubmissionEnded { submission: self.submission, result };
        if owner.notify(Message::Device(event)).is_err() {
            tracing::error!(submission = self.submission.0, "no place for the end of a submission");
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.tell(Err(DeviceError::Unwatched));
    }
}
