//! `libhsa-runtime64.so.1` on the software GPU: C programs that link the HSA runtime run on the in-process face of
//! `wavescope-software-gpu`, unchanged and without a GPU.
//!
//! Every C symbol jumps through the replaceable API table, as in ROCr: a tool that `HSA_TOOLS_LIB` names gets that
//! table and sees the program's calls. Like ROCr it does not export what only the table has (intercept queues).
//!
//! The environment chooses the machine: `WAVESCOPE_GPU_TOPOLOGY=FOLDER`, or `WAVESCOPE_GPU=gfx942*2`, else one MI300X.
//!
//! It must not know anything but the table: what an entry does is the business of the software GPU.
//!
//! ```
//! // The symbols are the table's entries under their C names.
//! unsafe extern "C" {
//!     fn hsa_init() -> hsa_sys::hsa_status_t;
//! }
//! # extern crate hsa_runtime64;
//! // SAFETY: hsa_init takes nothing and may be called at any time.
//! assert_eq!(unsafe { hsa_init() }, hsa_sys::HSA_STATUS_SUCCESS);
//! ```

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the C symbols are trampolines for x86-64 Linux");

mod core_symbols;
mod extension_symbols;
mod older_names;
mod tables;
