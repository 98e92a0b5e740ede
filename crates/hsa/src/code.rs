//! Code objects and kernels of an executable, as the loader knows them.

use std::ffi::{c_int, c_void};

use hsa_sys::{
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, HSA_EXECUTABLE_SYMBOL_INFO_NAME,
    HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, HSA_EXTENSION_AMD_LOADER,
    HSA_STATUS_SUCCESS, HSA_SYMBOL_KIND_KERNEL, HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_FILE,
    HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH, hsa_agent_t, hsa_executable_symbol_info_t,
    hsa_executable_symbol_t, hsa_executable_t, hsa_loaded_code_object_t, hsa_status_t,
    hsa_ven_amd_loader_1_01_pfn_t, hsa_ven_amd_loader_code_object_storage_type_t,
    hsa_ven_amd_loader_loaded_code_object_info_t,
};

use crate::Hsa;
use crate::error::{Error, check, entry};

/// Where the bytes of a code object came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeStorage {
    /// Memory of the application, there as long as the code object is loaded.
    Memory {
        /// Its address.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// A file of the application.
    File {
        /// Its descriptor.
        descriptor: c_int,
    },
    /// Not kept.
    None,
}

/// A code object of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutableCode {
    /// The agent it is loaded on.
    pub agent: hsa_agent_t,
    /// Address of the loaded segments.
    pub load_base: u64,
    /// Bytes from `load_base` on.
    pub load_size: u64,
    /// What is added to an ELF address.
    pub load_delta: i64,
    /// Where it came from, as the loader names it (`file://` or `memory://`).
    pub uri: String,
    /// Where its bytes are.
    pub storage: CodeStorage,
}

/// A kernel of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Name, as in the ELF symbol table (it ends in `.kd` on current compilers).
    pub name: String,
    /// Address of the kernel descriptor, as in a dispatch packet.
    pub kernel_object: u64,
    /// Static LDS per work-group, bytes.
    pub group_segment_bytes: u32,
    /// Scratch per work-item, bytes.
    pub private_segment_bytes: u32,
    /// Bytes of kernel arguments.
    pub kernarg_segment_bytes: u32,
}

impl Hsa {
    /// The code objects of an executable.
    ///
    /// # Errors
    /// [`Error::Call`], [`Error::MissingEntry`] (a runtime without the loader extension, version 1.01).
    pub fn executable_code(&self, executable: hsa_executable_t) -> Result<Vec<ExecutableCode>, Error> {
        let loader = self.loader()?;
        let call = "hsa_ven_amd_loader_executable_iterate_loaded_code_objects";
        let iterate = entry(call, loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects)?;
        let mut found: Vec<hsa_loaded_code_object_t> = Vec::new();
        // SAFETY: the executable is the application's, alive during the hooked call; the callback matches its data and
        // runs only before the call returns.
        let status = unsafe { iterate(executable, Some(collect_code), (&raw mut found).cast()) };
        check(call, status)?;
        found.into_iter().map(|code| read_code(&loader, code)).collect()
    }

    /// The kernels of an executable on an agent.
    ///
    /// # Errors
    /// [`Error::Call`], [`Error::MissingEntry`].
    pub fn kernels(
        &self,
        executable: hsa_executable_t,
        agent: hsa_agent_t,
    ) -> Result<Vec<KernelSymbol>, Error> {
        let call = "hsa_executable_iterate_agent_symbols";
        let iterate = entry(call, self.table().core.hsa_executable_iterate_agent_symbols_fn)?;
        let mut found: Vec<hsa_executable_symbol_t> = Vec::new();
        // SAFETY: as in `executable_code`.
        let status = unsafe { iterate(executable, agent, Some(collect_symbol), (&raw mut found).cast()) };
        check(call, status)?;
        let mut kernels = Vec::new();
        for symbol in found {
            if self.symbol_u32(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE)? == HSA_SYMBOL_KIND_KERNEL.0 {
                kernels.push(self.read_kernel(symbol)?);
            }
        }
        Ok(kernels)
    }

    fn loader(&self) -> Result<hsa_ven_amd_loader_1_01_pfn_t, Error> {
        let call = "hsa_system_get_major_extension_table";
        let get = entry(call, self.table().core.hsa_system_get_major_extension_table_fn)?;
        let mut loader = hsa_ven_amd_loader_1_01_pfn_t::zeroed();
        let (extension, length) = (HSA_EXTENSION_AMD_LOADER.0 as u16, size_of_val(&loader));
        // SAFETY: the runtime writes at most `length` bytes of version 1's table.
        let status = unsafe { get(extension, 1, length, (&raw mut loader).cast()) };
        check(call, status)?;
        Ok(loader)
    }

    fn read_kernel(&self, symbol: hsa_executable_symbol_t) -> Result<KernelSymbol, Error> {
        let length = self.symbol_u32(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH)?;
        let mut name = vec![0u8; length as usize];
        // SAFETY: the runtime writes as many bytes as it said the name has.
        unsafe { self.symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, name.as_mut_ptr().cast()) }?;
        let mut kernel_object = 0u64;
        let value = (&raw mut kernel_object).cast();
        // SAFETY: the attribute is a 64-bit address.
        unsafe { self.symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, value) }?;
        Ok(KernelSymbol {
            name: String::from_utf8_lossy(&name).into_owned(),
            kernel_object,
            group_segment_bytes: self
                .symbol_u32(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE)?,
            private_segment_bytes: self
                .symbol_u32(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE)?,
            kernarg_segment_bytes: self
                .symbol_u32(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE)?,
        })
    }

    /// A 32-bit attribute; every one asked for in this file is 32-bit by the header.
    fn symbol_u32(
        &self,
        symbol: hsa_executable_symbol_t,
        attribute: hsa_executable_symbol_info_t,
    ) -> Result<u32, Error> {
        let mut value = 0u32;
        // SAFETY: see above.
        unsafe { self.symbol_info(symbol, attribute, (&raw mut value).cast()) }?;
        Ok(value)
    }

    /// # Safety
    /// `value` has room for the attribute.
    unsafe fn symbol_info(
        &self,
        symbol: hsa_executable_symbol_t,
        attribute: hsa_executable_symbol_info_t,
        value: *mut c_void,
    ) -> Result<(), Error> {
        let call = "hsa_executable_symbol_get_info";
        let get = entry(call, self.table().core.hsa_executable_symbol_get_info_fn)?;
        // SAFETY: the symbol comes from the runtime, and `value` has room by this function's contract.
        let status = unsafe { get(symbol, attribute, value) };
        check(call, status)
    }
}

fn read_code(
    loader: &hsa_ven_amd_loader_1_01_pfn_t,
    code: hsa_loaded_code_object_t,
) -> Result<ExecutableCode, Error> {
    let number = |attribute| {
        let mut value = 0u64;
        // SAFETY: every attribute read through this closure is a number of at most 64 bits by the header.
        unsafe { code_info(loader, code, attribute, (&raw mut value).cast()) }?;
        Ok::<u64, Error>(value)
    };
    let length = number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH)?;
    let mut uri = vec![0u8; length as usize];
    let attribute = HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI;
    // SAFETY: the runtime writes as many bytes as it said the text has.
    unsafe { code_info(loader, code, attribute, uri.as_mut_ptr().cast()) }?;
    let kind = number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE)?;
    let storage = match hsa_ven_amd_loader_code_object_storage_type_t(kind as u32) {
        HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY => CodeStorage::Memory {
            address: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE)?,
            size: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE)?,
        },
        HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_FILE => CodeStorage::File {
            descriptor: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE)? as c_int,
        },
        _ => CodeStorage::None,
    };
    Ok(ExecutableCode {
        agent: hsa_agent_t { handle: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT)? },
        load_base: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE)?,
        load_size: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE)?,
        load_delta: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA)?.cast_signed(),
        uri: String::from_utf8_lossy(&uri).into_owned(),
        storage,
    })
}

/// # Safety
/// `value` has room for the attribute.
unsafe fn code_info(
    loader: &hsa_ven_amd_loader_1_01_pfn_t,
    code: hsa_loaded_code_object_t,
    attribute: hsa_ven_amd_loader_loaded_code_object_info_t,
    value: *mut c_void,
) -> Result<(), Error> {
    let call = "hsa_ven_amd_loader_loaded_code_object_get_info";
    let get = entry(call, loader.hsa_ven_amd_loader_loaded_code_object_get_info)?;
    // SAFETY: the code object comes from the loader, and `value` has room by this function's contract.
    let status = unsafe { get(code, attribute, value) };
    check(call, status)
}

unsafe extern "C-unwind" fn collect_code(
    _executable: hsa_executable_t,
    code: hsa_loaded_code_object_t,
    data: *mut c_void,
) -> hsa_status_t {
    // SAFETY: `data` is the vector of `executable_code`, which nobody else uses during the call.
    let found = unsafe { &mut *data.cast::<Vec<hsa_loaded_code_object_t>>() };
    found.push(code);
    HSA_STATUS_SUCCESS
}

unsafe extern "C-unwind" fn collect_symbol(
    _executable: hsa_executable_t,
    _agent: hsa_agent_t,
    symbol: hsa_executable_symbol_t,
    data: *mut c_void,
) -> hsa_status_t {
    // SAFETY: `data` is the vector of `kernels`, which nobody else uses during the call.
    let found = unsafe { &mut *data.cast::<Vec<hsa_executable_symbol_t>>() };
    found.push(symbol);
    HSA_STATUS_SUCCESS
}
