//! Readers, executables and symbols of the process by handle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hsa_sys::*;
use wavescope_core::GfxTarget;

use super::executable::{Executable, Loaded, Symbol};
use super::reader::Reader;
use crate::face::allocations::Allocations;
use crate::face::error::{Failure, Outcome};

/// Handles are numbers that no pointer looks like, never reused.
static NEXT_HANDLE: AtomicU64 = AtomicU64::new(0x436f_0001);

/// Everything about code.
pub(in crate::face) struct CodeObjects {
    memory: Arc<Allocations>,
    readers: Mutex<BTreeMap<u64, Arc<Reader>>>,
    executables: Mutex<BTreeMap<u64, Arc<Executable>>>,
}

impl CodeObjects {
    pub(in crate::face) fn new(memory: Arc<Allocations>) -> Self {
        Self { memory, readers: Mutex::default(), executables: Mutex::default() }
    }

    /// Takes in a reader and returns its handle.
    pub(in crate::face) fn add_reader(&self, reader: Reader) -> hsa_code_object_reader_t {
        let handle = next_handle();
        self.readers().insert(handle, Arc::new(reader));
        hsa_code_object_reader_t { handle }
    }

    pub(in crate::face) fn remove_reader(&self, reader: hsa_code_object_reader_t) -> Outcome {
        self.readers().remove(&reader.handle).map(drop).ok_or(INVALID_READER)
    }

    pub(in crate::face) fn create_executable(
        &self,
        profile: hsa_profile_t,
        rounding: hsa_default_float_rounding_mode_t,
        frozen: bool,
    ) -> hsa_executable_t {
        let handle = next_handle();
        self.executables().insert(handle, Arc::new(Executable::new(handle, profile, rounding, frozen)));
        hsa_executable_t { handle }
    }

    /// Destroys an executable: its code leaves memory, and its handles mean nothing any more.
    pub(in crate::face) fn destroy_executable(&self, executable: hsa_executable_t) -> Outcome {
        self.executables().remove(&executable.handle).map(drop).ok_or(INVALID_EXECUTABLE)
    }

    pub(in crate::face) fn executable(&self, executable: hsa_executable_t) -> Outcome<Arc<Executable>> {
        self.executables().get(&executable.handle).cloned().ok_or(INVALID_EXECUTABLE)
    }

    /// All executables, oldest first.
    pub(in crate::face) fn all_executables(&self) -> Vec<Arc<Executable>> {
        self.executables().values().cloned().collect()
    }

    /// Everything loaded, oldest first within an executable.
    pub(in crate::face) fn all_loaded(&self) -> Vec<Arc<Loaded>> {
        self.all_executables().iter().flat_map(|executable| executable.loaded()).collect()
    }

    /// Loads a reader's code object into an executable.
    pub(in crate::face) fn load(
        &self,
        executable: hsa_executable_t,
        agent: (hsa_agent_t, GfxTarget),
        reader: hsa_code_object_reader_t,
    ) -> Outcome<hsa_loaded_code_object_t> {
        let executable = self.executable(executable)?;
        if executable.is_frozen() {
            return Err(Failure(HSA_STATUS_ERROR_FROZEN_EXECUTABLE));
        }
        let reader = self.readers().get(&reader.handle).cloned().ok_or(INVALID_READER)?;
        let loaded = Loaded::load(&reader, executable.handle, agent, &self.memory, &next_handle)?;
        let handle = loaded.handle;
        executable.add(Arc::new(loaded))?;
        Ok(hsa_loaded_code_object_t { handle })
    }

    pub(in crate::face) fn loaded(&self, loaded: hsa_loaded_code_object_t) -> Outcome<Arc<Loaded>> {
        let found = self.all_loaded().into_iter().find(|found| found.handle == loaded.handle);
        found.ok_or(Failure(HSA_STATUS_ERROR_INVALID_CODE_OBJECT))
    }

    pub(in crate::face) fn symbol(&self, symbol: hsa_executable_symbol_t) -> Outcome<Arc<Symbol>> {
        let symbols = self.all_executables().into_iter().flat_map(|executable| executable.symbols(None));
        let found = { symbols }.find(|found| found.handle == symbol.handle);
        found.ok_or(Failure(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL))
    }

    /// Drops everything.
    pub(in crate::face) fn clear(&self) {
        self.executables().clear();
        self.readers().clear();
    }

    fn readers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Reader>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executables(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Executable>>> {
        self.executables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const INVALID_READER: Failure = Failure(HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
const INVALID_EXECUTABLE: Failure = Failure(HSA_STATUS_ERROR_INVALID_EXECUTABLE);

fn next_handle() -> u64 {
    NEXT_HANDLE.fetch_add(1, Ordering::Relaxed)
}
