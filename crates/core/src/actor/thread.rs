//! The thread that owns an actor's state.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::Address;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{MailReceiver, Places, RecvError, mailbox};
use crate::{Error, threads};

/// A state that one thread owns and messages change.
pub trait Actor {
    /// What it understands.
    type Message;

    /// Name of its thread, in errors and logs. Linux shows the first 15 bytes.
    const NAME: &'static str;

    /// Handles one message. `Break` ends the actor.
    fn handle(&mut self, message: Self::Message) -> ControlFlow<()>;

    /// When [`overdue`](Self::overdue) is to be called, if no message changes that before.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Handles a deadline that has passed. It must move the deadline, or no message is handled any more.
    fn overdue(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// An actor's loop: handles messages until the actor breaks or the mailbox is closed and empty.
///
/// [`spawn`] runs it on a thread; a model runs it on one of its own.
pub fn run<A: Actor>(actor: &mut A, inbox: &mut MailReceiver<A::Message>) {
    loop {
        let received = match actor.deadline() {
            Some(deadline) => inbox.recv_deadline(deadline),
            None => inbox.recv(),
        };
        let flow = match received {
            Ok(message) => actor.handle(message),
            Err(RecvError::Empty) => actor.overdue(),
            Err(RecvError::Closed) => ControlFlow::Break(()),
        };
        if flow.is_break() {
            return;
        }
    }
}

/// Starts `actor` on a thread of its own.
///
/// # Errors
/// [`Error::Spawn`].
pub fn spawn<A>(actor: A, places: Places) -> Result<ActorThread<A::Message>, Error>
where
    A: Actor + Send + 'static,
    A::Message: Send + 'static,
{
    spawn_with(places, |_| actor)
}

/// As [`spawn`], for an actor that hands out its own address: it ends when it is closed or breaks, not when the
/// last address is gone.
///
/// # Errors
/// [`Error::Spawn`].
pub fn spawn_with<A>(
    places: Places,
    actor: impl FnOnce(&Address<A::Message>) -> A,
) -> Result<ActorThread<A::Message>, Error>
where
    A: Actor + Send + 'static,
    A::Message: Send + 'static,
{
    let (mail, inbox) = mailbox(places);
    let address = Address::new(A::NAME, mail);
    let actor = actor(&address);
    let thread = threads::create(A::NAME, move || live(actor, inbox))
        .map_err(|source| Error::Spawn { actor: A::NAME, source })?;
    Ok(ActorThread { address, thread: Some(thread) })
}

/// How an actor's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Finished,
    Panicked,
}

/// Runs the loop and sees to it that state and mailbox are dropped, and so every waiter woken, even by a panic.
fn live<A: Actor>(actor: A, inbox: MailReceiver<A::Message>) -> End {
    // The state is not looked at after a panic, only dropped: broken invariants stay inside.
    let outcome = catch_unwind(AssertUnwindSafe(move || {
        let (mut actor, mut inbox) = (actor, inbox);
        run(&mut actor, &mut inbox);
        #[cfg(loom)]
        crate::fault::keep(crate::fault::Fault::UndeliveredKept, inbox);
    }));
    match outcome {
        Ok(()) => End::Finished,
        Err(_) => {
            #[cfg(not(loom))] // a model panics in every schedule
            tracing::error!(actor = A::NAME, "actor panicked; its waiters get an error");
            End::Panicked
        }
    }
}

/// An actor's thread with its address. Dropping it closes the mailbox and waits for the thread.
#[derive(Debug)]
pub struct ActorThread<M> {
    address: Address<M>,
    thread: Option<JoinHandle<End>>,
}

impl<M> ActorThread<M> {
    /// Where to send messages.
    pub fn address(&self) -> &Address<M> {
        &self.address
    }

    /// Whether the caller runs on this thread: it must not wait for an answer then.
    pub fn is_current(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id())
    }

    /// Takes no more messages, waits until those sent before are handled and the thread has ended.
    ///
    /// # Errors
    /// [`Error::ActorGone`] if the actor panicked.
    pub fn close_and_join(mut self) -> Result<(), Error> {
        self.address.close();
        self.join()
    }

    fn join(&mut self) -> Result<(), Error> {
        if self.is_current() {
            // The actor dropped its own thread: it cannot wait for itself, and ends by itself.
            return Ok(());
        }
        let Some(thread) = self.thread.take() else { return Ok(()) };
        match thread.join() {
            Ok(End::Finished) => Ok(()),
            Ok(End::Panicked) | Err(_) => Err(Error::ActorGone { actor: self.address.name() }),
        }
    }
}

impl<M> Drop for ActorThread<M> {
    fn drop(&mut self) {
        self.address.close();
        // A panicked actor was logged when it panicked.
        let _ = self.join();
    }
}
