//! Executables: loaded code objects and their symbols.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hsa_sys::*;
use wavescope_core::GfxTarget;
use wavescope_isa::KernelDescriptor;

use super::image::{Image, ImageSymbol};
use super::reader::{Reader, Storage};
use crate::face::allocations::Allocations;
use crate::face::error::{Failure, Outcome};

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::face) enum SymbolKind {
    /// A kernel, with what its descriptor says.
    Kernel { kernarg_bytes: u32, group_bytes: u32, private_bytes: u32, dynamic_stack: bool },
    /// A variable.
    Variable { bytes: u64, is_const: bool },
}

/// A kernel or variable of a loaded code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::face) struct Symbol {
    pub(in crate::face) handle: u64,
    pub(in crate::face) name: String,
    /// Where it is loaded: for a kernel its descriptor, which is its kernel object.
    pub(in crate::face) address: u64,
    pub(in crate::face) kind: SymbolKind,
    pub(in crate::face) agent: hsa_agent_t,
}

/// A code object in device memory; freed when dropped.
pub(in crate::face) struct Loaded {
    pub(in crate::face) handle: u64,
    pub(in crate::face) executable: u64,
    pub(in crate::face) agent: hsa_agent_t,
    pub(in crate::face) storage: Storage,
    /// Address of its first byte.
    pub(in crate::face) base: u64,
    pub(in crate::face) bytes: u64,
    /// What to add to an address of the file.
    pub(in crate::face) delta: u64,
    pub(in crate::face) symbols: Vec<Arc<Symbol>>,
    memory: Arc<Allocations>,
}

/// An executable.
pub(in crate::face) struct Executable {
    pub(in crate::face) handle: u64,
    pub(in crate::face) profile: hsa_profile_t,
    pub(in crate::face) rounding: hsa_default_float_rounding_mode_t,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    frozen: bool,
    loaded: Vec<Arc<Loaded>>,
}

impl Executable {
    pub(super) fn new(
        handle: u64,
        profile: hsa_profile_t,
        rounding: hsa_default_float_rounding_mode_t,
        frozen: bool,
    ) -> Self {
        Self { handle, profile, rounding, inside: Mutex::new(Inside { frozen, loaded: Vec::new() }) }
    }

    pub(in crate::face) fn is_frozen(&self) -> bool {
        self.inside().frozen
    }

    /// Ends loading. A second time is an error.
    pub(in crate::face) fn freeze(&self) -> Outcome {
        let mut inside = self.inside();
        if inside.frozen {
            return Err(Failure(HSA_STATUS_ERROR_FROZEN_EXECUTABLE));
        }
        inside.frozen = true;
        Ok(())
    }

    pub(super) fn add(&self, loaded: Arc<Loaded>) -> Outcome {
        let mut inside = self.inside();
        if inside.frozen {
            return Err(Failure(HSA_STATUS_ERROR_FROZEN_EXECUTABLE));
        }
        inside.loaded.push(loaded);
        Ok(())
    }

    /// What is loaded, in the order of loading.
    pub(in crate::face) fn loaded(&self) -> Vec<Arc<Loaded>> {
        self.inside().loaded.clone()
    }

    /// All symbols of an agent, or of all agents.
    pub(in crate::face) fn symbols(&self, agent: Option<hsa_agent_t>) -> Vec<Arc<Symbol>> {
        let loaded = self.loaded();
        let of_agent = |loaded: &&Arc<Loaded>| agent.is_none_or(|agent| agent == loaded.agent);
        loaded.iter().filter(of_agent).flat_map(|loaded| loaded.symbols.iter().cloned()).collect()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loaded {
    /// Loads a code object for an agent of `target`. `next_handle` gives numbers that nothing else has.
    pub(super) fn load(
        reader: &Reader,
        executable: u64,
        (agent, target): (hsa_agent_t, GfxTarget),
        memory: &Arc<Allocations>,
        next_handle: &dyn Fn() -> u64,
    ) -> Outcome<Self> {
        let image = Image::parse(reader.bytes())?;
        if image.target.name() != target.to_string() {
            return Err(Failure(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS));
        }
        let base = memory.allocate_internal(image.bytes)?;
        let mut loaded = Self {
            handle: next_handle(),
            executable,
            agent,
            storage: reader.storage.clone(),
            base,
            bytes: image.bytes,
            delta: base.wrapping_sub(image.first),
            symbols: Vec::new(),
            memory: Arc::clone(memory),
        };
        let bytes = image.relocated(base)?;
        let place = std::ptr::with_exposed_provenance_mut::<u8>(base as usize);
        // SAFETY: `base` was just allocated with this size and nobody else knows it yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        let symbol = |symbol: &ImageSymbol| Arc::new(loaded.symbol(symbol, next_handle()));
        loaded.symbols = image.symbols.iter().map(symbol).collect();
        Ok(loaded)
    }

    fn symbol(&self, symbol: &ImageSymbol, handle: u64) -> Symbol {
        let kernel = symbol.descriptor.as_ref().and_then(|descriptor| kernel(descriptor));
        let variable = SymbolKind::Variable { bytes: symbol.bytes, is_const: symbol.is_const };
        let kind = kernel.unwrap_or(variable);
        let address = self.delta.wrapping_add(symbol.address);
        Symbol { handle, name: symbol.name.clone(), address, kind, agent: self.agent }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.memory.free(self.base).is_err() {
            tracing::error!(base = self.base, "a code object's memory is not known to the runtime");
        }
    }
}

/// What a kernel's descriptor says; `None` if it is none.
fn kernel(descriptor: &[u8]) -> Option<SymbolKind> {
    /// `ENABLE_DYNAMIC_STACK` of the code properties (LLVM AMDGPU usage guide, "Kernel Descriptor").
    const DYNAMIC_STACK: u16 = 1 << 11;
    let descriptor = KernelDescriptor::new(descriptor)?;
    Some(SymbolKind::Kernel {
        group_bytes: descriptor.group_bytes(),
        private_bytes: descriptor.private_bytes(),
        kernarg_bytes: descriptor.kernarg_bytes(),
        dynamic_stack: descriptor.code_properties() & DYNAMIC_STACK != 0,
    })
}
