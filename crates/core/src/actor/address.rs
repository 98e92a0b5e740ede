//! Where to send an actor's messages.

use std::time::Duration;

use super::{Pending, Reply, reply};
use crate::Error;
use crate::sync::{Deadline, MailSender, SendError};

/// A cloneable handle to an actor's mailbox. It does not keep the actor alive past its end.
#[derive(Debug)]
pub struct Address<M> {
    name: &'static str,
    mail: MailSender<M>,
}

impl<M> Address<M> {
    pub(super) fn new(name: &'static str, mail: MailSender<M>) -> Self {
        Self { name, mail }
    }

    /// The actor's name, as in its thread and in errors.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sends a request and waits while the request places are taken.
    ///
    /// # Errors
    /// [`Error::ActorGone`].
    pub fn send(&self, message: M) -> Result<(), Error> {
        self.mail.send(message).map_err(|_| self.gone())
    }

    /// Sends a notice into a place that the caller owns; never waits. Returns whether it was taken: a notice
    /// to an actor that is gone has nobody to tell.
    ///
    /// # Errors
    /// Hands back a notice for which there was no place: the caller did not own one.
    pub fn notify(&self, message: M) -> Result<bool, M> {
        match self.mail.notify(message) {
            Ok(()) => Ok(true),
            Err(SendError::Closed(_)) => Ok(false),
            Err(SendError::Full(message)) => Err(message),
        }
    }

    /// Sends the request that `message` builds around a reply. The answer is [`Error::ActorGone`] if the actor
    /// is, or ends before it answers.
    pub fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> M) -> Pending<T> {
        let (reply, pending) = reply(self.name);
        // An undelivered message drops its reply, which settles the wait.
        let _ = self.mail.send(message(reply));
        pending
    }

    /// As [`ask`](Self::ask), and waits for the answer: `timeout` covers the wait for a request place as well. Under
    /// loom time does not pass.
    ///
    /// # Errors
    /// [`Error::ActorSilent`] when time ran out, [`Error::ActorGone`].
    pub fn ask_within<T>(&self, message: impl FnOnce(Reply<T>) -> M, timeout: Duration) -> Result<T, Error> {
        let deadline = Deadline::after(timeout);
        let silent = Error::ActorSilent { actor: self.name, waited: timeout };
        let (reply, pending) = reply(self.name);
        match self.mail.send_until(message(reply), deadline) {
            Ok(()) => {}
            Err(SendError::Full(_)) => return Err(silent),
            Err(SendError::Closed(_)) => return Err(self.gone()),
        }
        match pending.wait_timeout(deadline.left()) {
            // What the client asked for, not what was left of it.
            Err(Error::ActorSilent { .. }) => Err(silent),
            answered => answered,
        }
    }

    /// Takes no more messages; the actor handles those that were sent before and ends.
    pub fn close(&self) {
        self.mail.close();
    }

    fn gone(&self) -> Error {
        Error::ActorGone { actor: self.name }
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { name: self.name, mail: self.mail.clone() }
    }
}
