//! The actor kit: an owner thread, its mailbox, one-shot replies, an ordered end.
//!
//! An actor is a state with one [`Actor::handle`] per message; [`spawn`] gives it a thread and a mailbox.
//! Whatever ends the thread, a message, a closed mailbox or a panic, everyone who waits for an answer wakes with
//! [`Error::ActorGone`](crate::Error::ActorGone): replies travel inside the messages and the state, and dropping
//! one is the answer "gone".
//!
//! ```
//! use std::ops::ControlFlow;
//! use wavescope_core::actor::{Actor, Reply, spawn};
//! use wavescope_core::sync::Places;
//!
//! struct Sum(u64);
//! enum Message {
//!     Add(u64),
//!     Get(Reply<u64>),
//! }
//! impl Actor for Sum {
//!     type Message = Message;
//!     const NAME: &'static str = "sum";
//!     fn handle(&mut self, message: Message) -> ControlFlow<()> {
//!         match message {
//!             Message::Add(value) => self.0 += value,
//!             Message::Get(reply) => reply.send(self.0),
//!         }
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! let sum = spawn(Sum(0), Places { requests: 4, notices: 0 })?;
//! sum.address().send(Message::Add(2))?;
//! assert_eq!(sum.address().ask(Message::Get).wait()?, 2);
//! sum.close_and_join()?;
//! # Ok::<(), wavescope_core::Error>(())
//! ```

mod address;
mod reply;
mod thread;

pub use address::Address;
pub use reply::{Pending, Reply, reply};
pub use thread::{Actor, ActorThread, run, spawn, spawn_with};
