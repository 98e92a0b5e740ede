//! Code objects loaded by calls of the test's own: from memory, from a file, from a part of a file. What the loader says of
//! them is asked here too.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;

use hsa_sys::*;

use crate::packets::core;
use crate::rig::Rig;

/// Where the bytes come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Memory(&'a [u8]),
    File(&'a File),
    /// With offset and size.
    Part(&'a File, usize, usize),
}

/// An executable with one code object on the first GPU.
pub(crate) struct Executable<'a> {
    rig: &'a Rig,
    pub(crate) handle: hsa_executable_t,
    code: hsa_loaded_code_object_t,
    reader: hsa_code_object_reader_t,
}

macro_rules! must {
    ($entry:expr, $($argument:expr),*) => {{
        let entry = $entry.expect("the entry is there");
        // SAFETY: handles of the runtime, and results that live here.
        let status = unsafe { entry($($argument),*) };
        assert_eq!(status, HSA_STATUS_SUCCESS, stringify!($entry));
    }};
}

/// The loader's own entries.
fn loader(rig: &Rig) -> hsa_ven_amd_loader_1_02_pfn_t {
    let mut table = hsa_ven_amd_loader_1_02_pfn_t::zeroed();
    let (extension, bytes) = (HSA_EXTENSION_AMD_LOADER.0 as u16, size_of_val(&table));
    must!(core(rig).hsa_system_get_major_extension_table_fn, extension, 1, bytes, (&raw mut table).cast());
    table
}

impl<'a> Executable<'a> {
    pub(crate) fn load(rig: &'a Rig, source: Source<'_>) -> Self {
        let (core, gpu) = (core(rig), rig.gpu(0).agent());
        let mut reader = hsa_code_object_reader_t { handle: 0 };
        let into = &raw mut reader;
        match source {
            Source::Memory(bytes) => {
                must!(
                    core.hsa_code_object_reader_create_from_memory_fn,
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    into
                );
            }
            Source::File(file) => {
                must!(core.hsa_code_object_reader_create_from_file_fn, file.as_raw_fd(), into);
            }
            Source::Part(file, offset, size) => {
                let create =
                    loader(rig).hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size;
                must!(create, file.as_raw_fd(), offset, size, into);
            }
        }
        let mut handle = hsa_executable_t { handle: 0 };
        let none = std::ptr::null();
        let rounding = HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT;
        must!(core.hsa_executable_create_alt_fn, HSA_PROFILE_BASE, rounding, none, &raw mut handle);
        let mut code = hsa_loaded_code_object_t { handle: 0 };
        must!(core.hsa_executable_load_agent_code_object_fn, handle, gpu, reader, none, &raw mut code);
        must!(core.hsa_executable_freeze_fn, handle, none);
        Self { rig, handle, code, reader }
    }

    /// The descriptor's address of a kernel, and its static LDS.
    pub(crate) fn kernel(&self, name: &str) -> (u64, u32) {
        let (core, gpu) = (core(self.rig), self.rig.gpu(0).agent());
        let name = CString::new(format!("{name}.kd")).unwrap();
        let mut symbol = hsa_executable_symbol_t { handle: 0 };
        let get = core.hsa_executable_get_symbol_by_name_fn;
        must!(get, self.handle, name.as_ptr(), &raw const gpu, &raw mut symbol);
        let (mut object, mut group_bytes) = (0_u64, 0_u32);
        let info = core.hsa_executable_symbol_get_info_fn;
        must!(info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, (&raw mut object).cast());
        let attribute = HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE;
        must!(info, symbol, attribute, (&raw mut group_bytes).cast());
        (object, group_bytes)
    }

    /// A number that the loader knows of the code object.
    pub(crate) fn said(&self, attribute: hsa_ven_amd_loader_loaded_code_object_info_t) -> u64 {
        self.ask(attribute).unwrap()
    }

    /// As [`said`](Self::said), where the loader may have no answer.
    pub(crate) fn ask(
        &self,
        attribute: hsa_ven_amd_loader_loaded_code_object_info_t,
    ) -> Result<u64, hsa_status_t> {
        let mut value = 0_u64;
        let get = loader(self.rig).hsa_ven_amd_loader_loaded_code_object_get_info.unwrap();
        // SAFETY: the code object is loaded; the number takes what is asked for.
        let status = unsafe { get(self.code, attribute, (&raw mut value).cast()) };
        if status == HSA_STATUS_SUCCESS { Ok(value) } else { Err(status) }
    }

    /// First address and end of all segments, by the loader's list of segments.
    pub(crate) fn segments(&self) -> (u64, u64) {
        let query = loader(self.rig).hsa_ven_amd_loader_query_segment_descriptors;
        let mut count = 0;
        must!(query, std::ptr::null_mut(), &raw mut count);
        let mut list = vec![hsa_ven_amd_loader_segment_descriptor_t::zeroed(); count];
        must!(query, list.as_mut_ptr(), &raw mut count);
        let mine = list.iter().filter(|segment| segment.executable == self.handle);
        let ranges = mine.map(|segment| {
            let base = segment.segment_base.addr() as u64;
            (base, base + segment.segment_size as u64)
        });
        ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap()
    }
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        let core = core(self.rig);
        must!(core.hsa_executable_destroy_fn, self.handle);
        must!(core.hsa_code_object_reader_destroy_fn, self.reader);
    }
}
