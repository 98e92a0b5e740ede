//! Face 1 of the software GPU: an HSA runtime inside the process, as the table of functions that tools and
//! applications call ([`HsaApiTable`](hsa_sys::HsaApiTable)).
//!
//! [`SoftwareRuntime`] starts it with [`Options`] and gives the table. It provides the entries that an application
//! with queues, signals, memory and code objects needs, and the ones that an interceptor needs; every other entry
//! returns a status whose text names the entry. Behaviour is ROCr 7.2.4's where programs can tell, down to the
//! batches that an intercept queue hands to its handler.
//!
//! It knows the devices of this crate and nothing of who measures them.
//!
//! ```
//! use wavescope_software_gpu::face::{Options, SoftwareRuntime};
//!
//! let runtime = SoftwareRuntime::start(Options::preset("gfx942".parse()?, 1))?;
//! assert_eq!(runtime.topology().agents()[0].compute_units, 304);
//! let table = runtime.table();
//! assert!(!table.is_null());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address_map;
mod agents;
mod allocations;
mod async_events;
mod clock;
mod code;
mod copies;
mod entries;
mod error;
mod event_slots;
mod hardware_queue;
mod host;
mod intercept_queue;
mod options;
mod out;
mod pages;
mod pools;
mod preset;
mod queue_block;
mod queue_table;
mod refused;
mod runtime;
mod signal;
mod status_text;
mod table;
mod tools;
mod wait;

pub use clock::TimeMode;
pub use error::Error;
pub use options::{Options, Tools};
pub use runtime::SoftwareRuntime;
pub use table::table;
