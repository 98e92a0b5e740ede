//! What code is loaded where, and which kernel a dispatch packet names.
//!
//! An executable's code objects and kernels are taken in when it is frozen and leave before it is destroyed. Lookups
//! happen when results are delivered, not while packets are rewritten. An address that is used again after an
//! unload names the newer kernel.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wavescope_core::sync::Mutex;
use wavescope_core::{AgentId, CodeObjectId, LoadedCodeObject};
use wavescope_hsa::{CodeStorage, ExecutableCode, Hsa, KernelSymbol};

/// A kernel that may be dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, without the suffix `.kd` of its descriptor.
    pub name: Arc<str>,
    /// The agent it is loaded on.
    pub agent: AgentId,
    /// The code object that holds it; `None` if the loader did not say.
    pub code_object: Option<CodeObjectId>,
    /// Facts from its descriptor and symbol.
    pub symbol: KernelSymbol,
}

/// A code object that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// Id, agent, place.
    pub loaded: LoadedCodeObject,
    /// What is added to an ELF address.
    pub load_delta: i64,
    /// Where it came from, as the loader names it: `file://PATH`, with `#offset=..&size=..` for a part of the file, or
    /// `memory://PROCESS#offset=..&size=..`. ROCr also names the file if the application loads from memory that a file is mapped
    /// to.
    pub uri: Arc<str>,
    /// Where its bytes are. ROCr 7.2.4 says memory of every code object: it maps files, so only `uri` tells them apart.
    pub storage: CodeStorage,
}

/// Is told of loads and unloads, on the thread of the application that causes them and with no lock held.
///
/// A code object comes before its kernels, and goes behind them.
pub trait CodeObjectListener: Send + Sync {
    /// A code object was loaded; its kernels can be dispatched when the call that loads it returns.
    fn loaded(&self, code: &CodeObject);

    /// A code object is about to go; its memory is still there until this returns.
    fn unloading(&self, code: &CodeObject);

    /// A kernel was loaded.
    fn kernel_loaded(&self, kernel: &Kernel) {
        let _ = kernel;
    }

    /// A kernel is about to go.
    fn kernel_unloading(&self, kernel: &Kernel) {
        let _ = kernel;
    }
}

/// All loaded code.
#[derive(Default)]
pub(crate) struct CodeObjects {
    state: Mutex<State>,
    listeners: Mutex<Vec<Arc<dyn CodeObjectListener>>>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By executable handle.
    objects: Vec<(u64, CodeObject)>,
    /// By descriptor address.
    kernels: HashMap<u64, (u64, Kernel)>,
}

impl CodeObjects {
    pub(crate) fn listen(&self, listener: Arc<dyn CodeObjectListener>) {
        self.listeners.lock().push(listener);
    }

    pub(crate) fn kernel(&self, kernel_object: u64) -> Option<Kernel> {
        self.state.lock().kernels.get(&kernel_object).map(|(_, kernel)| kernel.clone())
    }

    pub(crate) fn list(&self) -> Vec<CodeObject> {
        self.state.lock().objects.iter().map(|(_, code)| code.clone()).collect()
    }

    /// Takes in a frozen executable. What the runtime does not tell is logged and left out.
    pub(crate) fn add(&self, hsa: &Hsa, executable: hsa_sys::hsa_executable_t) {
        let code = hsa.executable_code(executable).unwrap_or_else(|error| {
            tracing::warn!(%error, "code objects of an executable are unknown");
            Vec::new()
        });
        let mut kernels = Vec::new();
        for gpu in hsa.gpus() {
            match hsa.kernels(executable, gpu.handle) {
                Ok(symbols) => kernels.push((gpu.id, symbols)),
                Err(error) => tracing::warn!(%error, agent = %gpu.id, "kernels of an executable are unknown"),
            }
        }
        let agent_of = |code: &ExecutableCode| hsa.gpu_by_handle(code.agent).map(|gpu| gpu.id);
        // One without storage is nothing that could be read again: the loader's own.
        let stored = code.into_iter().filter(|code| code.storage != CodeStorage::None);
        let located = stored.filter_map(|code| agent_of(&code).map(|agent| (agent, code)));
        let (added, kernels) = self.insert(executable.handle, located.collect(), kernels);
        self.announce(&added, &kernels);
    }

    fn announce(&self, added: &[CodeObject], kernels: &[Kernel]) {
        self.tell(|listener| {
            added.iter().for_each(|code| listener.loaded(code));
            kernels.iter().for_each(|kernel| listener.kernel_loaded(kernel));
        });
    }

    /// Forgets an executable that is about to be destroyed.
    pub(crate) fn remove(&self, executable: hsa_sys::hsa_executable_t) {
        let handle = executable.handle;
        let (code, kernels) = {
            let state = self.state.lock();
            let code = state.objects.iter().filter(|(owner, _)| *owner == handle);
            let kernels = state.kernels.values().filter(|(owner, _)| *owner == handle);
            let code: Vec<_> = code.map(|(_, code)| code.clone()).collect();
            (code, in_order(kernels.map(|(_, kernel)| kernel.clone()).collect()))
        };
        self.tell(|listener| {
            kernels.iter().for_each(|kernel| listener.kernel_unloading(kernel));
            code.iter().for_each(|code| listener.unloading(code));
        });
        let mut state = self.state.lock();
        state.objects.retain(|(owner, _)| *owner != handle);
        state.kernels.retain(|_, (owner, _)| *owner != handle);
    }

    fn insert(
        &self,
        executable: u64,
        code: Vec<(AgentId, ExecutableCode)>,
        kernels: Vec<(AgentId, Vec<KernelSymbol>)>,
    ) -> (Vec<CodeObject>, Vec<Kernel>) {
        let mut state = self.state.lock();
        let (mut added, mut new_kernels) = (Vec::new(), Vec::new());
        for (agent, code) in code {
            state.next += 1;
            let id = CodeObjectId(state.next);
            let loaded = LoadedCodeObject { id, agent, base: code.load_base, size: code.load_size };
            let (load_delta, storage, uri) = (code.load_delta, code.storage, code.uri.into());
            added.push(CodeObject { loaded, load_delta, uri, storage });
        }
        state.objects.extend(added.iter().map(|code| (executable, code.clone())));
        for (agent, symbols) in kernels {
            for symbol in symbols {
                let code_object = holder(&added, agent, symbol.kernel_object);
                let name = symbol.name.strip_suffix(".kd").unwrap_or(&symbol.name).into();
                let (key, kernel) = (symbol.kernel_object, Kernel { name, agent, code_object, symbol });
                new_kernels.push(kernel.clone());
                state.kernels.insert(key, (executable, kernel));
            }
        }
        (added, in_order(new_kernels))
    }

    fn tell(&self, tell: impl Fn(&dyn CodeObjectListener)) {
        let listeners = self.listeners.lock().clone();
        for listener in &listeners {
            // The call of the application that loads or unloads has an outcome of its own.
            if catch_unwind(AssertUnwindSafe(|| tell(&**listener))).is_err() {
                tracing::error!("a listener for code objects panicked");
            }
        }
    }
}

/// By address.
fn in_order(mut kernels: Vec<Kernel>) -> Vec<Kernel> {
    kernels.sort_by_key(|kernel| kernel.symbol.kernel_object);
    kernels
}

/// The code object of `agent` whose loaded range has `address`.
fn holder(code: &[CodeObject], agent: AgentId, address: u64) -> Option<CodeObjectId> {
    let holds = |loaded: &LoadedCodeObject| {
        loaded.agent == agent && address.checked_sub(loaded.base).is_some_and(|offset| offset < loaded.size)
    };
    code.iter().map(|code| code.loaded).find(holds).map(|loaded| loaded.id)
}

impl std::fmt::Debug for CodeObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeObjects").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const AGENT: AgentId = AgentId(0);

    fn code(base: u64, size: u64) -> (AgentId, ExecutableCode) {
        let code = ExecutableCode {
            agent: hsa_sys::hsa_agent_t { handle: 1 },
            load_base: base,
            load_size: size,
            load_delta: 0,
            uri: "memory://1#offset=0x1000&size=4096".to_owned(),
            storage: CodeStorage::None,
        };
        (AGENT, code)
    }

    fn symbol(name: &str, kernel_object: u64) -> KernelSymbol {
        KernelSymbol {
            name: name.to_owned(),
            kernel_object,
            group_segment_bytes: 0,
            private_segment_bytes: 0,
            kernarg_segment_bytes: 0,
        }
    }

    // Field report G63: several kernels in one object, found by descriptor address; a name need not end in `.kd`.
    #[test]
    fn kernels_are_found_by_descriptor_address() {
        let objects = CodeObjects::default();
        let kernels = vec![symbol("add.kd", 0x1040), symbol("mul", 0x1080), symbol("far.kd", 0x9000)];
        let (added, _) = objects.insert(1, vec![code(0x1000, 0x1000)], vec![(AGENT, kernels)]);
        let found =
            |address| objects.kernel(address).map(|kernel| (kernel.name.to_string(), kernel.code_object));
        assert_eq!(found(0x1040), Some(("add".to_owned(), Some(added[0].loaded.id))));
        assert_eq!(found(0x1080), Some(("mul".to_owned(), Some(CodeObjectId(1)))));
        assert_eq!(found(0x9000), Some(("far".to_owned(), None)), "in no code object");
        assert_eq!(found(0x1041), None);
    }

    /// Writes down what it hears.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl CodeObjectListener for Heard {
        fn loaded(&self, code: &CodeObject) {
            self.0.lock().push(format!(
                "+{} {:x}+{:x} {}",
                code.loaded.id, code.loaded.base, code.loaded.size, code.uri
            ));
        }

        fn unloading(&self, code: &CodeObject) {
            self.0.lock().push(format!("-{}", code.loaded.id));
        }

        fn kernel_loaded(&self, kernel: &Kernel) {
            self.0.lock().push(format!("+{}", kernel.name));
        }

        fn kernel_unloading(&self, kernel: &Kernel) {
            self.0.lock().push(format!("-{}", kernel.name));
            assert_ne!(&*kernel.name, "b", "the listener's own bug");
        }
    }

    // Load: the object, then its kernels; unload: the kernels, then the object. One listener's panic is not the next one's.
    #[test]
    fn listeners_hear_objects_around_their_kernels() {
        let objects = CodeObjects::default();
        let (first, second) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        objects.listen(Arc::<Heard>::clone(&first));
        objects.listen(Arc::<Heard>::clone(&second));
        let kernels = vec![(AGENT, vec![symbol("b.kd", 0x1080), symbol("a.kd", 0x1040)])];
        let (added, kernels) = objects.insert(1, vec![code(0x1000, 0x100)], kernels);
        objects.announce(&added, &kernels);
        let uri = "memory://1#offset=0x1000&size=4096";
        assert_eq!(*first.0.lock(), [format!("+code object 1 1000+100 {uri}"), "+a".into(), "+b".into()]);
        first.0.lock().clear();
        objects.remove(hsa_sys::hsa_executable_t { handle: 1 });
        assert_eq!(*first.0.lock(), ["-a", "-b"], "it panicked at the second");
        assert_eq!(second.0.lock().len(), 5, "three loads, and two until it panicked itself");
        assert!(objects.list().is_empty() && objects.kernel(0x1040).is_none());
    }

    #[test]
    fn a_reused_address_names_the_newer_kernel_and_ids_are_never_reused() {
        let objects = CodeObjects::default();
        objects.insert(1, vec![code(0x1000, 0x100)], vec![(AGENT, vec![symbol("old.kd", 0x1040)])]);
        objects.remove(hsa_sys::hsa_executable_t { handle: 1 });
        assert_eq!(objects.kernel(0x1040), None);
        assert!(objects.list().is_empty());
        objects.insert(2, vec![code(0x1000, 0x100)], vec![(AGENT, vec![symbol("new.kd", 0x1040)])]);
        let kernel = objects.kernel(0x1040).unwrap();
        assert_eq!((&*kernel.name, kernel.code_object), ("new", Some(CodeObjectId(2))));
    }
}
