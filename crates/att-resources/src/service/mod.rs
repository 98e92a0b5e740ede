//! Thread trace of chosen dispatches: what a client configures, starts and stops.
//!
//! ```text
//!  hook ──enqueue──▶ subscriber ──Begin, StopSubmitted──▶ owner ──ended──▶ worker ──chunks──▶ client
//!  reaper ──────────▶ subscriber ──StopRetired──────────▶   ▲   │
//!                                                           │   └──release──▶ interception (return_grant)
//!                                        worker ──SlotCopied┘
//! ```
//!
//! All dispatches of an agent write the same slot, and those of a context use one packet program instance: only
//! one runs at a time, and the next one after the data of the one before were copied.

mod dispatch;
mod grants;
mod lane;
mod subscriber;
mod worker;

pub use dispatch::{
    Decide, Decision, Delivery, DispatchTrace, DispatchTraceSetup, TraceSummary, TracedAgent,
};
