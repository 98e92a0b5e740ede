//! The application: a reference on the runtime, its GPUs, and what is made on them.

use std::ffi::c_void;
use std::sync::Arc;

use hsa_sys::{HSA_DEVICE_TYPE_GPU, HSA_STATUS_SUCCESS, HsaApiTable, hsa_agent_t, hsa_status_t};

use crate::api::{Api, call};
use crate::gpu::{self, Gpu};
use crate::{Buffer, Error, Module, Queue, Signal};

/// A running application. Everything made from it keeps the runtime alive until it is dropped.
#[derive(Debug)]
pub struct Application {
    reference: Arc<Reference>,
    gpus: Vec<Gpu>,
}

/// One `hsa_init`, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) api: Api,
}

impl Drop for Reference {
    fn drop(&mut self) {
        if let Err(error) = call!(self.api, core_.hsa_shut_down_fn()) {
            tracing::warn!(%error, "the runtime was shut down by somebody else");
        }
    }
}

impl Application {
    /// Initialises the runtime behind `table` and looks for its GPUs.
    ///
    /// # Safety
    /// `table` is null or a runtime's API table that outlives the application and everything made from it. Entries
    /// may be replaced, but not while another thread is inside a call of this application.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Missing`], [`Error::Call`], [`Error::NoPool`].
    pub unsafe fn open(table: *const HsaApiTable) -> Result<Self, Error> {
        // SAFETY: passed on from the caller.
        let api = unsafe { Api::new(table) }?;
        call!(api, core_.hsa_init_fn())?;
        let reference = Arc::new(Reference { api });
        let agents = agents(api)?;
        let cpu = agents.iter().copied().find(|&agent| !is_gpu(api, agent)).unwrap_or_default();
        let gpus = agents.into_iter().filter(|&agent| is_gpu(api, agent));
        let gpus = gpus.map(|agent| Gpu::open(api, agent, cpu)).collect::<Result<_, _>>()?;
        Ok(Self { reference, gpus })
    }

    /// The GPUs, in the runtime's order.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Loads a code object on a GPU.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses it.
    pub fn load(&self, gpu: &Gpu, code_object: &[u8]) -> Result<Module, Error> {
        Module::load(&self.reference, gpu, code_object)
    }

    /// Creates a queue of `packets` packets on a GPU, with profiling on.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn queue(&self, gpu: &Gpu, packets: u32) -> Result<Queue, Error> {
        Queue::create(&self.reference, gpu, packets)
    }

    /// Creates a signal.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn signal(&self, value: i64) -> Result<Signal, Error> {
        Signal::create(&self.reference, value)
    }

    /// Allocates zeroed host memory that a GPU can access.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn buffer(&self, gpu: &Gpu, bytes: usize) -> Result<Buffer, Error> {
        Buffer::allocate(&self.reference, gpu, bytes)
    }

    /// The system clock of the runtime, in nanoseconds: the clock of dispatch times.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn timestamp_ns(&self) -> Result<u64, Error> {
        let mut now = 0_u64;
        let attribute = hsa_sys::HSA_SYSTEM_INFO_TIMESTAMP;
        call!(self.reference.api, core_.hsa_system_get_info_fn(attribute, (&raw mut now).cast()))?;
        Ok(now)
    }
}

fn agents(api: Api) -> Result<Vec<hsa_agent_t>, Error> {
    unsafe extern "C-unwind" fn collect(agent: hsa_agent_t, list: *mut c_void) -> hsa_status_t {
        // SAFETY: `list` is the vector that the call below passes, borrowed by nobody else during it.
        unsafe { &mut *list.cast::<Vec<hsa_agent_t>>() }.push(agent);
        HSA_STATUS_SUCCESS
    }
    let mut list = Vec::<hsa_agent_t>::new();
    call!(api, core_.hsa_iterate_agents_fn(Some(collect), (&raw mut list).cast()))?;
    Ok(list)
}

fn is_gpu(api: Api, agent: hsa_agent_t) -> bool {
    gpu::info::<u32>(api, agent, hsa_sys::HSA_AGENT_INFO_DEVICE)
        .is_ok_and(|kind| kind == HSA_DEVICE_TYPE_GPU.0)
}
