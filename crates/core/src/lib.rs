//! What every Wavescope crate shares: ids, agents and their topology, records, packets, the dispatch seam
//! between interception and the services, and the actor kit.
//!
//! Main types: [`Topology`] with its [`Agent`]s, [`Dispatch`] and [`DispatchEvent`], and the two traits of the
//! seam, [`DispatchSubscriber`] (counting, thread trace) and [`Interception`] (whoever rewrites the packets).
//! [`actor`] and [`sync`] carry all threads and channels, also under the loom model checker; [`threads`] announces each
//! thread to tools that watch them.
//!
//! This crate makes no HSA call and knows no counter and no trace token.
//!
//! ```no_run
//! use wavescope_core::Topology;
//!
//! let topology = Topology::read("/sys/class/kfd/kfd/topology".as_ref())?;
//! println!("{} GPUs", topology.agents().len());
//! # Ok::<(), wavescope_core::Error>(())
//! ```

pub mod actor;
mod claims;
mod dispatch;
mod error;
#[cfg(loom)]
pub mod fault;
mod fault_switch;
mod gfx;
mod grants;
mod ids;
mod inflight;
mod packet;
mod records;
mod stream;
mod subscriber;
pub mod sync;
pub mod threads;
mod topology;

pub use claims::{Claim, ClaimTable, Conflict};
pub use dispatch::{Company, Dispatch, DispatchEvent, DispatchTimes, LossReason, Outcome};
pub use error::Error;
pub use gfx::{Generation, GfxTarget};
pub use grants::GrantReturns;
pub use ids::{AgentId, CodeObjectId, ContextId, DispatchId, QueueId, SubscriptionId, ThreadId, Token};
pub use inflight::InFlight;
pub use packet::{AqlPacket, Fence, PacketHeader, PacketType};
pub use records::{
    ChunkFlags, CounterId, CounterRecord, DispatchCounters, LoadedCodeObject, Position, TraceChunk,
};
pub use stream::{Overflow, RecordSink, Records, record_stream};
pub use subscriber::{
    Answer, DispatchSubscriber, Grant, Interception, InterceptionError, ProgramSink, Service, Subscription,
};
pub use topology::{Agent, PciLocation, Topology};
