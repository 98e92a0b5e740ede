//! Where the trampolines find the tables, and the trampolines themselves.
//!
//! A trampoline leaves every argument where it is and jumps: it needs no prototype. RAX is free for it, since it carries
//! an argument only in calls of variadic functions, and HSA has none (System V ABI for x86-64, section 3.2.3).

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use hsa_sys::{AmdExtTable, CoreApiTable, FinalizerExtTable, ImageExtTable, PcSamplingExtTable};
use wavescope_software_gpu::face;

pub(crate) static CORE: AtomicPtr<CoreApiTable> = AtomicPtr::new(null_mut());
pub(crate) static AMD_EXT: AtomicPtr<AmdExtTable> = AtomicPtr::new(null_mut());
pub(crate) static FINALIZER: AtomicPtr<FinalizerExtTable> = AtomicPtr::new(null_mut());
pub(crate) static IMAGE: AtomicPtr<ImageExtTable> = AtomicPtr::new(null_mut());
pub(crate) static PC_SAMPLING: AtomicPtr<PcSamplingExtTable> = AtomicPtr::new(null_mut());

const _: () = assert!(size_of::<AtomicPtr<CoreApiTable>>() == 8);

/// Runs when the library is loaded, before any symbol of it can be called.
#[used]
#[unsafe(link_section = ".init_array")]
static FIND_TABLES: extern "C" fn() = find_tables;

extern "C" fn find_tables() {
    let table = face::table();
    // SAFETY: the table and its parts live for ever; nobody else knows them before the library is loaded.
    let root = unsafe { *table };
    CORE.store(root.core_, Ordering::Release);
    AMD_EXT.store(root.amd_ext_, Ordering::Release);
    FINALIZER.store(root.finalizer_ext_, Ordering::Release);
    IMAGE.store(root.image_ext_, Ordering::Release);
    PC_SAMPLING.store(root.pc_sampling_ext_, Ordering::Release);
}

/// Exports C symbols that jump to the slots of a table.
macro_rules! symbols {
    ($place:ident: $table:ident { $($symbol:ident: $slot:ident,)* }) => { $(
        #[doc = concat!("`", stringify!($symbol), "` of the C API, through the table.")]
        ///
        /// # Safety
        /// As the HSA specification says for the C function; this declaration has no prototype and is not for Rust.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol() {
            core::arch::naked_asm!(
                "mov rax, qword ptr [rip + {table}]",
                "jmp qword ptr [rax + {slot}]",
                table = sym $crate::tables::$place,
                slot = const core::mem::offset_of!(hsa_sys::$table, $slot),
            )
        }
    )* };
}

pub(crate) use symbols;
