//! What every Wavescope crate shares: ids, packets, the dispatch seam between interception and the services.
//!
//! Main types: [`AqlPacket`], [`Dispatch`] and [`DispatchEvent`], and the two traits of the seam,
//! [`DispatchSubscriber`] (counting, thread trace) and [`Interception`] (whoever rewrites the packets).
//!
//! This crate makes no HSA call and knows no counter and no trace token.

mod dispatch;
mod ids;
mod packet;
mod subscriber;

pub use dispatch::{Dispatch, DispatchEvent, DispatchTimes, LossReason, Outcome};
pub use ids::{AgentId, CodeObjectId, ContextId, DispatchId, QueueId, SubscriptionId, ThreadId, Token};
pub use packet::{AqlPacket, Fence, PacketHeader, PacketType};
pub use subscriber::{
    Answer, DispatchSubscriber, Grant, Interception, InterceptionError, ProgramSink, Service, Subscription,
};
