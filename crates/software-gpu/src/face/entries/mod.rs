//! The API entries: C functions over the runtime's safe inside. Each turns handles and pointers into references once,
//! at its edge; what they may be is what the HSA specification demands of callers.

/// What the caller of every entry guarantees, since all of them are called through the same table by the same rules.
macro_rules! hsa_contract {
    () => {
        "\n# Safety\n\
        The caller keeps what the public header (`hsa.h`, `hsa_ext_amd.h`, `hsa_ven_amd_loader.h`) demands for this \
        entry: a handle is 0 or was made by this runtime, though it may be destroyed by now; a pointer is null or valid for \
        what the entry reads or writes through it, with as many elements as the count beside it says; a callback may be \
        called with the data that came with it for as long as the header says."
    };
}

pub(super) mod agents;
pub(super) mod code;
pub(super) mod intercept;
pub(super) mod loader;
pub(super) mod memory;
pub(super) mod profiling;
pub(super) mod queues;
pub(super) mod signal_groups;
pub(super) mod signals;
pub(super) mod system;
