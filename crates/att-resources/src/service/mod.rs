//! Thread trace of chosen dispatches, or of whole devices: what a client configures, starts and stops.
//!
//! ```text
//!  hook ──enqueue──▶ subscriber ──Begin, StopSubmitted──▶ owner ──ended──▶ worker ──chunks──▶ client
//!  reaper ──────────▶ subscriber ──StopRetired──────────▶   ▲   │
//!                                                           │   └──release──▶ interception (return_grant)
//!                                        worker ──SlotCopied┘
//! ```
//!
//! A device trace has no hook: its start and stop go to the owner, which submits them.
//!
//! All dispatches of an agent write the same slot, and those of a context use one packet program instance: only
//! one runs at a time, and the next one after the data of the one before were copied.

mod crew;
mod device;
mod dispatch;
mod lane;
mod subscriber;
mod tally;
mod worker;

pub use crew::{Delivery, TracedAgent};
pub use device::{DeviceTrace, DeviceTraceSetup};
pub use dispatch::{Decide, Decision, DispatchTrace, DispatchTraceSetup};
pub use tally::TraceSummary;
