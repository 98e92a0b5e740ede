//! Code objects: what the loader reports and what lies in memory.

use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use hsa_sys::*;
use wavescope_workload::{Error, kernels};

use crate::rig::{Rig, hsa};

fn loader(rig: &Rig) -> hsa_ven_amd_loader_1_03_pfn_t {
    let mut table = hsa_ven_amd_loader_1_03_pfn_t::zeroed();
    let (extension, bytes) = (HSA_EXTENSION_AMD_LOADER.0 as u16, size_of_val(&table));
    let out = (&raw mut table).cast();
    let status = hsa!(rig.table(), core_.hsa_system_get_major_extension_table_fn(extension, 1, bytes, out));
    assert_eq!(status, HSA_STATUS_SUCCESS);
    table
}

fn executables(rig: &Rig) -> Vec<hsa_executable_t> {
    unsafe extern "C-unwind" fn collect(executable: hsa_executable_t, list: *mut c_void) -> hsa_status_t {
        // SAFETY: the list that the caller below passes.
        unsafe { &mut *list.cast::<Vec<hsa_executable_t>>() }.push(executable);
        HSA_STATUS_SUCCESS
    }
    let mut list = Vec::<hsa_executable_t>::new();
    let iterate = loader(rig).hsa_ven_amd_loader_iterate_executables.unwrap();
    // SAFETY: callback and list fit each other.
    unsafe { iterate(Some(collect), (&raw mut list).cast()) };
    list
}

fn loaded(rig: &Rig, executable: hsa_executable_t) -> Vec<hsa_loaded_code_object_t> {
    unsafe extern "C-unwind" fn collect(
        _executable: hsa_executable_t,
        loaded: hsa_loaded_code_object_t,
        list: *mut c_void,
    ) -> hsa_status_t {
        // SAFETY: the list that the caller below passes.
        unsafe { &mut *list.cast::<Vec<hsa_loaded_code_object_t>>() }.push(loaded);
        HSA_STATUS_SUCCESS
    }
    let mut list = Vec::<hsa_loaded_code_object_t>::new();
    let iterate = loader(rig).hsa_ven_amd_loader_executable_iterate_loaded_code_objects.unwrap();
    // SAFETY: callback and list fit each other.
    unsafe { iterate(executable, Some(collect), (&raw mut list).cast()) };
    list
}

fn number(
    rig: &Rig,
    of: hsa_loaded_code_object_t,
    attribute: hsa_ven_amd_loader_loaded_code_object_info_t,
) -> u64 {
    let mut value = 0_u64;
    let info = loader(rig).hsa_ven_amd_loader_loaded_code_object_get_info.unwrap();
    // SAFETY: the attributes asked for here have at most eight bytes.
    assert_eq!(unsafe { info(of, attribute, (&raw mut value).cast()) }, HSA_STATUS_SUCCESS);
    value
}

/// Address and bytes of the code in the file, as llvm-readelf prints them: the segment that may be executed.
fn code_segment(file: &[u8]) -> (u64, &[u8]) {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap()) as usize;
    let (headers, size, count) = (word(32) as usize, half(54), half(56));
    for header in (0..count).map(|index| headers + index * size) {
        let flags = u32::from_le_bytes(file[header + 4..header + 8].try_into().unwrap());
        if file[header] == 1 && flags & 1 != 0 {
            let (offset, bytes) = (word(header + 8) as usize, word(header + 32) as usize);
            return (word(header + 16), &file[offset..offset + bytes]);
        }
    }
    panic!("no code")
}

#[test]
fn loaded_code_lies_where_the_loader_says() {
    let rig = Rig::new();
    let file = kernels::tiles("gfx942").unwrap();
    let module = rig.application.load(rig.gpu(), file).unwrap();
    let executable = executables(&rig)[0];
    let object = loaded(&rig, executable)[0];
    let base = number(&rig, object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE);
    let size = number(&rig, object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE);
    let delta = number(&rig, object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA);
    let (address, code) = code_segment(file);
    let place = std::ptr::with_exposed_provenance::<u8>((delta + address) as usize);
    // SAFETY: the loader says that the code lies here.
    assert_eq!(unsafe { std::slice::from_raw_parts(place, code.len()) }, code);
    for name in kernels::TILE_KERNELS {
        let kernel = module.kernel(name).unwrap();
        assert!((base..base + size).contains(&kernel.object), "{name}");
    }
    // From kernels/tiles.cl: 256 words of LDS; 16 rows of 17 words; none.
    let lds = kernels::TILE_KERNELS.map(|name| module.kernel(name).unwrap().group_bytes);
    assert_eq!(lds, [1024, 1088, 0]);
    // Three pointers or two with two numbers: the argument lists of the source.
    let arguments = kernels::TILE_KERNELS.map(|name| module.kernel(name).unwrap().kernarg_bytes);
    assert_eq!(arguments, [20, 24, 24]);
    drop(module);
    assert!(executables(&rig).is_empty());
    let info = loader(&rig).hsa_ven_amd_loader_loaded_code_object_get_info.unwrap();
    let mut value = 0_u64;
    let attribute = HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE;
    // SAFETY: an eight-byte attribute; the handle is dead, which the runtime checks.
    let status = unsafe { info(object, attribute, (&raw mut value).cast()) };
    assert_eq!(status, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

#[test]
fn symbols_are_the_kernels_of_the_source() {
    unsafe extern "C-unwind" fn collect(
        _executable: hsa_executable_t,
        _agent: hsa_agent_t,
        symbol: hsa_executable_symbol_t,
        list: *mut c_void,
    ) -> hsa_status_t {
        // SAFETY: the list that the caller below passes.
        unsafe { &mut *list.cast::<Vec<hsa_executable_symbol_t>>() }.push(symbol);
        HSA_STATUS_SUCCESS
    }
    let rig = Rig::new();
    let _module = rig.application.load(rig.gpu(), kernels::vectors("gfx942").unwrap()).unwrap();
    let mut symbols = Vec::<hsa_executable_symbol_t>::new();
    let list = (&raw mut symbols).cast();
    let (executable, agent) = (executables(&rig)[0], rig.gpu().agent());
    hsa!(rig.table(), core_.hsa_executable_iterate_agent_symbols_fn(executable, agent, Some(collect), list));
    let mut names: Vec<_> = symbols
        .iter()
        .map(|&symbol| {
            let mut length = 0_u32;
            let attribute = HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH;
            hsa!(
                rig.table(),
                core_.hsa_executable_symbol_get_info_fn(symbol, attribute, (&raw mut length).cast())
            );
            let mut name = vec![0_u8; length as usize];
            let (attribute, out) = (HSA_EXECUTABLE_SYMBOL_INFO_NAME, name.as_mut_ptr().cast());
            hsa!(rig.table(), core_.hsa_executable_symbol_get_info_fn(symbol, attribute, out));
            String::from_utf8(name).unwrap()
        })
        .collect();
    names.sort();
    let mut expected = kernels::VECTOR_KERNELS.map(|name| format!("{name}.kd"));
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn code_object_in_a_file_is_reported_with_its_path() {
    let rig = Rig::new();
    let path = std::env::temp_dir().join(format!("wavescope-{}.co", std::process::id()));
    File::create(&path).unwrap().write_all(kernels::vectors("gfx942").unwrap()).unwrap();
    let file = File::open(&path).unwrap();
    let mut reader = hsa_code_object_reader_t::zeroed();
    let descriptor = file.as_raw_fd();
    hsa!(rig.table(), core_.hsa_code_object_reader_create_from_file_fn(descriptor, &raw mut reader));
    let mut executable = hsa_executable_t::zeroed();
    let (profile, rounding) = (HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT);
    let none = std::ptr::null();
    hsa!(rig.table(), core_.hsa_executable_create_alt_fn(profile, rounding, none, &raw mut executable));
    let mut object = hsa_loaded_code_object_t::zeroed();
    let agent = rig.gpu().agent();
    let status = hsa!(
        rig.table(),
        core_.hsa_executable_load_agent_code_object_fn(executable, agent, reader, none, &raw mut object)
    );
    assert_eq!(status, HSA_STATUS_SUCCESS);
    let length = number(&rig, object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH);
    let mut uri = vec![0_u8; length as usize];
    let info = loader(&rig).hsa_ven_amd_loader_loaded_code_object_get_info.unwrap();
    let attribute = HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI;
    // SAFETY: as many bytes as the runtime asked for.
    unsafe { info(object, attribute, uri.as_mut_ptr().cast()) };
    assert_eq!(String::from_utf8(uri).unwrap(), format!("file://{}", path.display()));
    assert_eq!(hsa!(rig.table(), core_.hsa_executable_freeze_fn(executable, none)), HSA_STATUS_SUCCESS);
    assert_eq!(
        hsa!(
            rig.table(),
            core_.hsa_executable_load_agent_code_object_fn(executable, agent, reader, none, &raw mut object)
        ),
        HSA_STATUS_ERROR_FROZEN_EXECUTABLE
    );
    hsa!(rig.table(), core_.hsa_executable_destroy_fn(executable));
    hsa!(rig.table(), core_.hsa_code_object_reader_destroy_fn(reader));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn code_of_another_chip_and_files_that_are_no_code_are_refused() {
    let rig = Rig::new();
    let refused = |bytes: &[u8]| match rig.application.load(rig.gpu(), bytes) {
        Err(Error::Call { status, .. }) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(kernels::vectors("gfx90a").unwrap()), HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS);
    assert_eq!(refused(b"no code object at all, only a line of text"), HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    let whole = kernels::vectors("gfx942").unwrap();
    for cut in [1, 63, 64, 500, 3000] {
        assert_eq!(refused(&whole[..cut]), HSA_STATUS_ERROR_INVALID_CODE_OBJECT, "cut at {cut}");
    }
    let module = rig.application.load(rig.gpu(), whole).unwrap();
    assert!(matches!(module.kernel("no_such_kernel"), Err(Error::NoKernel { .. })));
}
