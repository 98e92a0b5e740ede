//! Queues that are not ours: the runtime's own, and those of the application that nobody intercepts.
//!
//! The runtime's internal queues (copies, fills, cache flushes) never come through the table, exist on every agent and are
//! announced by `hsa_amd_runtime_queue_create_register`; they are counted, and are nothing to worry about.
//!
//! An application queue that was there before interception, or for which interception had no memory, is another matter: its
//! kernels run beside those that are measured, and nobody sees them. Its agent is **blind** as long as such a queue
//! exists. An older queue is noticed at its first use of the table.

use std::ffi::c_void;
// A set that index entries look into without a lock.
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hsa_sys::{HSA_AMD_QUEUE_INFO_AGENT, HSA_STATUS_SUCCESS, hsa_agent_t, hsa_queue_t};
use wavescope_core::AgentId;
use wavescope_hsa::Hsa;

/// Places for queues that are not ours; a power of two. What does not fit is not noticed.
const PLACES: usize = 1024;

const EMPTY: usize = 0;
/// A place whose queue is gone: searches go on behind it.
const LEFT: usize = 1;

/// Queues of one agent that are not intercepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherQueues {
    /// The agent.
    pub agent: AgentId,
    /// Queues of the application that interception does not see. The agent is blind if there are any.
    pub unseen: u32,
    /// Queues that the runtime made for itself since interception began.
    pub internal: u32,
}

/// What is known of queues that are not ours.
pub(crate) struct Others {
    hsa: Hsa,
    /// Addresses of queues that were looked at.
    known: [AtomicUsize; PLACES],
    /// By place in the list of GPUs.
    unseen: Vec<AtomicU32>,
    internal: Vec<AtomicU32>,
}

impl Others {
    pub(crate) fn new(hsa: &Hsa) -> Self {
        let zeros = || hsa.gpus().iter().map(|_| AtomicU32::new(0)).collect();
        let known = [const { AtomicUsize::new(EMPTY) }; PLACES];
        Self { hsa: hsa.clone(), known, unseen: zeros(), internal: zeros() }
    }

    /// Has the runtime announce its own queues. One tool at a time can listen.
    pub(crate) fn listen(&'static self) {
        let register = self.hsa.table().amd.hsa_amd_runtime_queue_create_register_fn;
        let Some(register) = register else { return };
        // SAFETY: the notifier matches its data, which lives for good.
        let status = unsafe { register(Some(on_internal_queue), std::ptr::from_ref(self).cast_mut().cast()) };
        if status != HSA_STATUS_SUCCESS {
            tracing::debug!(?status, "the runtime does not announce its own queues");
        }
    }

    /// Whether an application used `queue` before. Interceptors that were there then know it too.
    #[inline]
    pub(crate) fn know(&self, queue: *const hsa_queue_t) -> bool {
        self.find(queue.addr()).is_ok()
    }

    /// An application uses `queue`; `ours` says whether it is intercepted. Returns the agent if it is not, and was not met
    /// before.
    ///
    /// # Safety
    /// A queue of the runtime, or one that is intercepted.
    #[cold]
    pub(crate) unsafe fn met(
        &self,
        queue: *const hsa_queue_t,
        ours: impl FnOnce(*const hsa_queue_t) -> bool,
    ) -> Option<AgentId> {
        if self.know(queue) {
            return None;
        }
        let ours = ours(queue);
        // SAFETY: by this function's contract.
        let gpu = if ours { None } else { unsafe { self.gpu_of(queue) } };
        while let Err(place) = self.find(queue.addr()) {
            let place = &self.known[place?];
            let free = place.load(Ordering::Relaxed);
            let is_free = matches!(free, EMPTY | LEFT);
            if is_free
                && place.compare_exchange(free, queue.addr(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                let gpu = gpu?;
                self.unseen[gpu].fetch_add(1, Ordering::Relaxed);
                return Some(self.hsa.gpus()[gpu].id);
            }
        }
        None
    }

    /// The application destroys `queue`. Returns the agent if nobody saw it.
    ///
    /// # Safety
    /// As for [`met`](Self::met), and it is still there.
    pub(crate) unsafe fn left(&self, queue: *const hsa_queue_t, ours: bool) -> Option<AgentId> {
        let place = self.find(queue.addr()).ok()?;
        // SAFETY: by this function's contract.
        let gpu = if ours { None } else { unsafe { self.gpu_of(queue) } };
        let place = &self.known[place];
        place.compare_exchange(queue.addr(), LEFT, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let gpu = gpu?;
        self.unseen[gpu].fetch_sub(1, Ordering::Relaxed);
        Some(self.hsa.gpus()[gpu].id)
    }

    /// The counts of all agents.
    pub(crate) fn list(&self) -> Vec<OtherQueues> {
        let counts = self.unseen.iter().zip(&self.internal);
        let gpus = self.hsa.gpus().iter().zip(counts);
        gpus.map(|(gpu, (unseen, internal))| OtherQueues {
            agent: gpu.id,
            unseen: unseen.load(Ordering::Relaxed),
            internal: internal.load(Ordering::Relaxed),
        })
        .collect()
    }

    /// Where the address stands; else a place for it, if there is one.
    fn find(&self, address: usize) -> Result<usize, Option<usize>> {
        let first = (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % PLACES;
        let mut free = None;
        for place in (0..PLACES).map(|step| (first + step) % PLACES) {
            match self.known[place].load(Ordering::Acquire) {
                EMPTY => return Err(free.or(Some(place))),
                LEFT => free = free.or(Some(place)),
                found if found == address => return Ok(place),
                _ => {}
            }
        }
        Err(free)
    }

    /// # Safety
    /// As for [`met`](Self::met).
    unsafe fn gpu_of(&self, queue: *const hsa_queue_t) -> Option<usize> {
        let get = self.hsa.table().amd.hsa_amd_queue_get_info_fn?;
        let mut agent = hsa_agent_t { handle: 0 };
        // SAFETY: the queue is the runtime's, and the attribute is an agent.
        let status = unsafe { get(queue.cast_mut(), HSA_AMD_QUEUE_INFO_AGENT, (&raw mut agent).cast()) };
        let gpus = self.hsa.gpus();
        (status == HSA_STATUS_SUCCESS).then(|| gpus.iter().position(|gpu| gpu.handle == agent))?
    }
}

/// The runtime made a queue for itself. It may hold locks: nothing is called back.
unsafe extern "C-unwind" fn on_internal_queue(
    _queue: *const hsa_queue_t,
    agent: hsa_agent_t,
    data: *mut c_void,
) {
    // SAFETY: `data` is what `listen` passed, and lives for good.
    let others = unsafe { &*data.cast::<Others>() };
    if let Some(gpu) = others.hsa.gpus().iter().position(|gpu| gpu.handle == agent) {
        others.internal[gpu].fetch_add(1, Ordering::Relaxed);
    }
}
