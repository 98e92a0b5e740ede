//! Code objects that come and go, against what the loader says of them, and the names of kernels in records.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

use hsa_sys::{
    HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE,
};
use wavescope_counting::PoolSize;
use wavescope_hsa::CodeStorage;
use wavescope_hsa_intercept::{CodeObject, CodeObjectListener, Kernel};
use wavescope_workload::{Launch, kernels};

use crate::loading::{Executable, Source};
use crate::rig::*;

const GPU: &str = "gfx942";

/// Bytes in a file before the code object.
const OFFSET: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Loaded(CodeObject),
    KernelLoaded(Kernel),
    KernelUnloading(Kernel),
    Unloading(CodeObject),
}

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl Heard {
    fn tell(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl CodeObjectListener for Heard {
    fn loaded(&self, code: &CodeObject) {
        self.tell(Event::Loaded(code.clone()));
    }

    fn unloading(&self, code: &CodeObject) {
        self.tell(Event::Unloading(code.clone()));
    }

    fn kernel_loaded(&self, kernel: &Kernel) {
        self.tell(Event::KernelLoaded(kernel.clone()));
    }

    fn kernel_unloading(&self, kernel: &Kernel) {
        self.tell(Event::KernelUnloading(kernel.clone()));
    }
}

fn listen(rig: &Rig) -> Arc<Heard> {
    let heard = Arc::new(Heard::default());
    let listener: Arc<dyn CodeObjectListener> = Arc::<Heard>::clone(&heard);
    rig.interceptor.listen(listener);
    heard
}

/// What was told of a load: one code object, then its kernels.
fn loaded(events: &[Event]) -> (CodeObject, Vec<Kernel>) {
    let [Event::Loaded(code), rest @ ..] = events else { panic!("{events:?}") };
    let kernel = |event: &Event| match event {
        Event::KernelLoaded(kernel) => kernel.clone(),
        other => panic!("{other:?}"),
    };
    (code.clone(), rest.iter().map(kernel).collect())
}

/// Place, bytes and kernels as the loader has them.
fn check_load(rig: &Rig, executable: &Executable<'_>, events: &[Event]) -> CodeObject {
    let (code, kernels) = loaded(events);
    let place = (code.loaded.base, code.loaded.size, code.load_delta.cast_unsigned());
    let said = [
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE,
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE,
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA,
    ]
    .map(|attribute| executable.said(attribute));
    assert_eq!(place, said.into());
    assert_eq!((code.loaded.base, code.loaded.base + code.loaded.size), executable.segments());
    assert_eq!(code.loaded.agent, rig.agent(0).id);
    let mut expected = kernels::VECTOR_KERNELS.map(|name| (executable.kernel(name).0, name.to_owned()));
    expected.sort();
    let told = kernels.iter().map(|kernel| (kernel.symbol.kernel_object, kernel.name.to_string()));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(kernels.iter().all(|kernel| kernel.code_object == Some(code.loaded.id)), "{kernels:?}");
    for kernel in &kernels {
        assert_eq!(rig.interceptor.kernel(kernel.symbol.kernel_object).as_ref(), Some(kernel));
    }
    assert!(rig.interceptor.code_objects().contains(&code));
    code
}

/// Two kernels of the code object are dispatched; their records lead to their names.
fn check_records(rig: &Rig, executable: &Executable<'_>) {
    let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(4))));
    counting.start().unwrap();
    let launches = [("empty", 2), ("collatz", 3)].map(|(name, waves)| {
        let (object, group_bytes) = executable.kernel(name);
        let kernel = wavescope_workload::Kernel { object, group_bytes, ..rig.kernel(0, name) };
        Launch::new(kernel, [64 * waves, 1, 1], [64, 1, 1])
    });
    rig.queue(0).submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();
    let names = std::iter::from_fn(|| records.try_recv()).map(|counted| {
        let kernel = rig.interceptor.kernel(counted.dispatch.kernel_object).unwrap();
        (kernel.name.to_string(), total(&counted, "SQ_WAVES"))
    });
    assert_eq!(names.collect::<Vec<_>>(), [("empty".to_owned(), 2.0), ("collatz".to_owned(), 3.0)]);
}

/// The reverse of the load, and nothing is known afterwards.
fn check_unload(rig: &Rig, load: &[Event], unload: &[Event]) {
    let (code, kernels) = loaded(load);
    let mut expected: Vec<_> = kernels.iter().cloned().map(Event::KernelUnloading).collect();
    expected.push(Event::Unloading(code.clone()));
    assert_eq!(unload, expected);
    assert!(kernels.iter().all(|kernel| rig.interceptor.kernel(kernel.symbol.kernel_object).is_none()));
    assert!(!rig.interceptor.code_objects().iter().any(|there| there.loaded.id == code.loaded.id));
}

/// Loads, compares, dispatches, unloads; `check` compares what the storage is.
fn life(rig: &Rig, source: Source<'_>, check: impl FnOnce(&CodeObject, &Executable<'_>)) {
    let heard = listen(rig);
    let executable = Executable::load(rig, source);
    let load = heard.take();
    let code = check_load(rig, &executable, &load);
    check(&code, &executable);
    check_records(rig, &executable);
    assert_eq!(heard.take(), []);
    drop(executable);
    check_unload(rig, &load, &heard.take());
}

/// A file in memory, by the application's own `mmap`.
struct Mapping(*const u8, usize);

impl Mapping {
    fn new(file: &File, bytes: usize) -> Self {
        let (nowhere, access, flags) = (std::ptr::null_mut(), libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new mapping, wherever the system likes.
        let address = unsafe { libc::mmap(nowhere, bytes, access, flags, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Self(address.cast(), bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that was made of it is used any more.
        assert_eq!(unsafe { libc::munmap(self.0.cast_mut().cast(), self.1) }, 0);
    }
}

/// The storage is what the loader says, and leads to the bytes. ROCr 7.2.4 says memory of everything, also of files, which it
/// maps: only the URI names the file.
fn check_storage(code: &CodeObject, executable: &Executable<'_>, bytes: &[u8]) {
    let said = |attribute| executable.said(attribute);
    let kind = said(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE) as u32;
    assert_eq!(kind, HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY.0);
    let file = executable.ask(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE);
    assert_eq!(file, Err(HSA_STATUS_ERROR_INVALID_ARGUMENT));
    let address = said(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE);
    let size = said(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE);
    assert_eq!(code.storage, CodeStorage::Memory { address, size });
    let address = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the loader keeps the bytes as long as the code object is loaded and its reader there.
    assert_eq!(unsafe { std::slice::from_raw_parts(address, size as usize) }, bytes);
}

/// The mapping of a file that an address lies in: the file's name and the address' offset in the file, as the kernel has them
/// (`/proc/self/maps`).
fn mapped(address: usize) -> (String, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let place = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (from, to) = fields[0].split_once('-').unwrap();
        let is_inside = (hex(from)..hex(to)).contains(&address);
        is_inside.then(|| (fields[5].to_owned(), hex(fields[2]) + address - hex(from)))
    };
    maps.lines().find_map(place).unwrap()
}

/// A file: padding, a code object, padding.
fn file_with(before: usize, bytes: &[u8], after: usize) -> (tempfile::NamedTempFile, String) {
    let mut named = tempfile::NamedTempFile::new().unwrap();
    named.write_all(&vec![0xaa; before]).unwrap();
    named.write_all(bytes).unwrap();
    named.write_all(&vec![0xbb; after]).unwrap();
    let path = named.path().to_str().unwrap().to_owned();
    (named, path)
}

on_both_faces! {
    fn a_code_object_from_memory_is_what_the_loader_says(rig on "gfx942") {
        let bytes = kernels::vectors(GPU).unwrap().to_vec();
        life(rig, Source::Memory(&bytes), |code, executable| {
            check_storage(code, executable, &bytes);
            let (address, size) = (bytes.as_ptr().addr(), bytes.len());
            let process = std::process::id();
            assert_eq!(&*code.uri, format!("memory://{process}#offset={address:#x}&size={size}"));
        });
    }

    /// As HIP does: the code objects are data of the program, or of a library. Where the program was started through a loader
    /// by hand, as on ROCr here, the system calls it by the loader's name, and so does ROCr.
    fn a_code_object_from_the_data_of_the_program_is_named_by_its_file(rig on "gfx942") {
        let bytes = kernels::vectors(GPU).unwrap();
        life(rig, Source::Memory(bytes), |code, executable| {
            check_storage(code, executable, bytes);
            let (file, offset) = mapped(bytes.as_ptr().addr());
            assert!(file.contains("/suite-"), "{file}: not this program");
            let program = std::fs::read_link("/proc/self/exe").unwrap();
            let (program, size) = (program.display(), bytes.len());
            assert_eq!(&*code.uri, format!("file://{program}#offset={offset}&size={size}"));
        });
    }

    /// Only what the system's loader mapped has a file's name (unless `HSA_LOADER_ENABLE_MMAP_URI` says otherwise).
    fn a_code_object_from_a_file_that_the_application_maps_is_memory(rig on "gfx942") {
        let bytes = kernels::vectors(GPU).unwrap();
        let (named, path) = file_with(OFFSET, bytes, 100);
        let mapping = Mapping::new(named.as_file(), OFFSET + bytes.len());
        let address = mapping.0.addr() + OFFSET;
        assert_eq!(mapped(address), (path, OFFSET));
        // SAFETY: nobody changes the file while it is mapped.
        let there = unsafe { std::slice::from_raw_parts(mapping.0.wrapping_add(OFFSET), bytes.len()) };
        life(rig, Source::Memory(there), |code, executable| {
            check_storage(code, executable, bytes);
            let (process, size) = (std::process::id(), bytes.len());
            assert_eq!(&*code.uri, format!("memory://{process}#offset={address:#x}&size={size}"));
        });
    }

    fn a_code_object_from_a_file_is_what_the_loader_says(rig on "gfx942") {
        let bytes = kernels::vectors(GPU).unwrap();
        let (named, path) = file_with(0, bytes, 0);
        life(rig, Source::File(named.as_file()), |code, executable| {
            check_storage(code, executable, bytes);
            assert_eq!(&*code.uri, format!("file://{path}"));
        });
    }

    /// As in a fat binary: the code object begins somewhere in the file, or ends before the file does.
    fn a_code_object_from_a_part_of_a_file_is_named_with_its_place(rig on "gfx942") {
        let bytes = kernels::vectors(GPU).unwrap();
        for offset in [OFFSET, 0] {
            let (named, path) = file_with(offset, bytes, 100);
            life(rig, Source::Part(named.as_file(), offset, bytes.len()), |code, executable| {
                check_storage(code, executable, bytes);
                assert_eq!(&*code.uri, format!("file://{path}#offset={offset}&size={}", bytes.len()));
            });
        }
    }

    /// Two objects in turn until one of them lies where the other was: addresses lead to the newer kernels, and ids are new.
    fn an_address_that_is_used_again_names_the_newer_kernel(rig on "gfx942") {
        const ROUNDS: usize = 64;
        let heard = listen(rig);
        let sources = [kernels::vectors(GPU).unwrap(), kernels::tiles(GPU).unwrap()];
        let names = [&kernels::VECTOR_KERNELS[..], &kernels::TILE_KERNELS[..]];
        let mut ids = std::collections::HashSet::new();
        // By place: what lay there last.
        let mut before = HashMap::new();
        let mut reused = 0;
        for round in 0..ROUNDS {
            let which = round % 2;
            let executable = Executable::load(rig, Source::Memory(sources[which]));
            let (code, told) = loaded(&heard.take());
            assert!(ids.insert(code.loaded.id), "{} is used again", code.loaded.id);
            reused += usize::from(before.insert(code.loaded.base, which).is_some_and(|last| last != which));
            assert_eq!(told.len(), names[which].len());
            for name in names[which] {
                let kernel = rig.interceptor.kernel(executable.kernel(name).0).unwrap();
                assert_eq!((&*kernel.name, kernel.code_object), (*name, Some(code.loaded.id)));
            }
            drop(executable);
            heard.take();
        }
        assert!(reused > 0, "no place was used again");
    }
}
