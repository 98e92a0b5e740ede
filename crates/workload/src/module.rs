//! Loaded code and its kernels.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use hsa_sys::*;

use crate::api::{Api, call};
use crate::application::Reference;
use crate::{Error, Gpu};

/// A code object, loaded on one GPU and unloaded when dropped: no dispatch of it may be in flight then.
#[derive(Debug)]
pub struct Module {
    reference: Arc<Reference>,
    executable: hsa_executable_t,
    agent: hsa_agent_t,
}

/// What a dispatch has to know about a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name without `.kd`.
    pub name: String,
    /// Address of its descriptor.
    pub object: u64,
    /// LDS per work-group that its code uses, bytes.
    pub group_bytes: u32,
    /// Scratch per work-item, bytes.
    pub private_bytes: u32,
    /// Size of its arguments, bytes.
    pub kernarg_bytes: u32,
}

impl Module {
    pub(crate) fn load(reference: &Arc<Reference>, gpu: &Gpu, code: &[u8]) -> Result<Self, Error> {
        let api = reference.api;
        let mut reader = hsa_code_object_reader_t::zeroed();
        call!(
            api,
            core_.hsa_code_object_reader_create_from_memory_fn(
                code.as_ptr().cast(),
                code.len(),
                &raw mut reader
            )
        )?;
        let loaded = Self::from_reader(reference, gpu, reader);
        // The executable has its own copy; keeping the reader would keep the caller's bytes borrowed.
        call!(api, core_.hsa_code_object_reader_destroy_fn(reader))?;
        loaded
    }

    fn from_reader(
        reference: &Arc<Reference>,
        gpu: &Gpu,
        reader: hsa_code_object_reader_t,
    ) -> Result<Self, Error> {
        let api = reference.api;
        let mut executable = hsa_executable_t::zeroed();
        call!(
            api,
            core_.hsa_executable_create_alt_fn(
                HSA_PROFILE_BASE,
                HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                std::ptr::null(),
                &raw mut executable,
            )
        )?;
        // From here on dropping the module cleans up.
        let module = Self { reference: Arc::clone(reference), executable, agent: gpu.agent() };
        let (options, loaded) = (std::ptr::null(), std::ptr::null_mut());
        call!(
            api,
            core_.hsa_executable_load_agent_code_object_fn(executable, module.agent, reader, options, loaded)
        )?;
        call!(api, core_.hsa_executable_freeze_fn(executable, options))?;
        Ok(module)
    }

    /// A kernel by its name in the source.
    ///
    /// # Errors
    /// [`Error::NoKernel`], [`Error::Call`].
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let api = self.reference.api;
        let missing = || Error::NoKernel { name: name.to_owned() };
        let symbol_name = CString::new(format!("{name}.kd")).map_err(|_| missing())?;
        let mut symbol = hsa_executable_symbol_t::zeroed();
        let found = call!(
            api,
            core_.hsa_executable_get_symbol_by_name_fn(
                self.executable,
                symbol_name.as_ptr(),
                &raw const self.agent,
                &raw mut symbol,
            )
        );
        match found {
            Err(Error::Call { status: HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, .. }) => return Err(missing()),
            other => other?,
        }
        let mut object = 0_u64;
        let attribute = HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT;
        symbol_info(api, symbol, attribute, (&raw mut object).cast())?;
        Ok(Kernel {
            name: name.to_owned(),
            object,
            group_bytes: number(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE)?,
            private_bytes: number(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE)?,
            kernarg_bytes: number(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE)?,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Err(error) = call!(self.reference.api, core_.hsa_executable_destroy_fn(self.executable)) {
            tracing::warn!(%error, "executable not destroyed");
        }
    }
}

fn number(
    api: Api,
    symbol: hsa_executable_symbol_t,
    attribute: hsa_executable_symbol_info_t,
) -> Result<u32, Error> {
    let mut value = 0_u32;
    symbol_info(api, symbol, attribute, (&raw mut value).cast())?;
    Ok(value)
}

fn symbol_info(
    api: Api,
    symbol: hsa_executable_symbol_t,
    attribute: hsa_executable_symbol_info_t,
    value: *mut c_void,
) -> Result<(), Error> {
    call!(api, core_.hsa_executable_symbol_get_info_fn(symbol, attribute, value))
}
