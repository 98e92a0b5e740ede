//! Locks, threads and mailboxes: the standard library and crossbeam in production, loom under `cfg(loom)`.
//!
//! Every crate with actors takes these from here, so that the same code runs under the model checker. Locks do
//! not poison: a thread that panicked under one is reported by its actor, not by every later `lock`.
//!
//! Main types: [`Mutex`], [`Condvar`], and the two ends of a mailbox, [`MailSender`] and [`MailReceiver`].

mod deadline;
mod lock;
#[cfg(not(loom))]
mod mailbox;
#[cfg(loom)]
#[path = "modelled_mailbox.rs"]
mod mailbox;
mod mailbox_types;
#[cfg(loom)]
pub mod model;

#[cfg(loom)]
pub use loom::sync::{Arc, atomic};
#[cfg(loom)]
pub use loom::thread;
#[cfg(not(loom))]
pub use std::sync::{Arc, atomic};
#[cfg(not(loom))]
pub use std::thread;

pub use deadline::Deadline;
pub use lock::{Condvar, Mutex, MutexGuard};
pub use mailbox::{MailReceiver, MailSender, mailbox};
pub use mailbox_types::{Places, RecvError, SendError};
