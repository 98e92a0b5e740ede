//! Where to send an actor's messages.

use super::{Pending, Reply, reply};
use crate::Error;
use crate::sync::{MailSender, SendError};

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
