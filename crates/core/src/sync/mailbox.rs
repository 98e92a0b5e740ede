//! The mailbox of production, on crossbeam channels.
//!
//! One channel keeps the order of all messages. A second one, the gate, holds a ticket for each waiting request,
//! so requests wait at the gate while notices find their place free. One place more than both kinds need is kept
//! for the closing mark, which therefore never waits.
//!
//! A bounded crossbeam channel keeps its messages when the receiver goes, and with them the replies that clients
//! wait for. So the receiver empties it, and `posting` tells it which senders may still be about to add one:
//! a sender announces itself, then looks at `closed`; the receiver sets `closed`, then looks at `posting`. Both
//! sequentially consistent, at least one sees the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_channel as channel;

use super::{Deadline, Places, RecvError, SendError};

#[derive(Debug)]
enum Envelope<T> {
    Request(T),
    Notice(T),
    Close,
}

/// Makes a mailbox. Messages arrive in the order in which they were sent, requests and notices alike.
pub fn mailbox<T>(places: Places) -> (MailSender<T>, MailReceiver<T>) {
    let (gate, tickets) = channel::bounded(places.requests.max(1));
    let (queue, messages) = channel::bounded(places.requests.max(1) + places.notices + 1);
    let shared = Arc::new(Shared {
        closed: AtomicBool::new(false),
        posting: AtomicUsize::new(0),
        free_notices: AtomicUsize::new(places.notices),
    });
    let sender = MailSender { gate, queue, shared: Arc::clone(&shared) };
    (sender, MailReceiver { tickets, messages, shared, closed: false })
}

#[derive(Debug)]
struct Shared {
    closed: AtomicBool,
    /// Senders between their look at `closed` and the end of their (never waiting) send.
    posting: AtomicUsize,
    /// Places of notices that no waiting notice occupies.
    free_notices: AtomicUsize,
}

/// A sending end; clones send into the same mailbox.
#[derive(Debug)]
pub struct MailSender<T> {
    gate: channel::Sender<()>,
    queue: channel::Sender<Envelope<T>>,
    shared: Arc<Shared>,
}

impl<T> MailSender<T> {
    /// Sends a request and waits while all request places are taken.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        if self.is_closed() || self.gate.send(()).is_err() {
            return Err(SendError::Closed(message));
        }
        self.post(Envelope::Request(message))
    }

    /// As [`send`](Self::send), until `deadline`.
    ///
    /// # Errors
    /// [`SendError::Full`] when time ran out, or [`SendError::Closed`].
    pub fn send_until(&self, message: T, deadline: Deadline) -> Result<(), SendError<T>> {
        let Some(at) = deadline.at() else { return self.send(message) };
        if self.is_closed() {
            return Err(SendError::Closed(message));
        }
        match self.gate.send_deadline((), at) {
            Ok(()) => self.post(Envelope::Request(message)),
            Err(channel::SendTimeoutError::Timeout(())) => Err(SendError::Full(message)),
            Err(channel::SendTimeoutError::Disconnected(())) => Err(SendError::Closed(message)),
        }
    }

    /// Sends a request if a place is free.
    ///
    /// # Errors
    /// [`SendError::Full`] or [`SendError::Closed`].
    pub fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError::Closed(message));
        }
        match self.gate.try_send(()) {
            Ok(()) => self.post(Envelope::Request(message)),
            Err(channel::TrySendError::Full(())) => Err(SendError::Full(message)),
            Err(channel::TrySendError::Disconnected(())) => Err(SendError::Closed(message)),
        }
    }

    /// Sends a notice into a place that the caller owns. Never waits.
    ///
    /// # Errors
    /// [`SendError::Full`] if the caller owns no place after all, or [`SendError::Closed`].
    pub fn notify(&self, message: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError::Closed(message));
        }
        let free = &self.shared.free_notices;
        if free.try_update(Ordering::AcqRel, Ordering::Relaxed, |free| free.checked_sub(1)).is_err() {
            return Err(SendError::Full(message));
        }
        self.post(Envelope::Notice(message))
    }

    /// Takes no more messages; the receiver still gets those that were sent before. Twice is fine.
    pub fn close(&self) {
        if !self.shared.closed.swap(true, Ordering::SeqCst) {
            // The place is reserved; a receiver that is gone needs no mark.
            let _ = self.queue.try_send(Envelope::Close);
        }
    }

    fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }

    fn post(&self, envelope: Envelope<T>) -> Result<(), SendError<T>> {
        self.shared.posting.fetch_add(1, Ordering::SeqCst);
        // The caller holds a ticket or a notice's place, so the queue has room: it only fails without a receiver.
        let refused = if self.is_closed() {
            Some(envelope)
        } else {
            self.queue.try_send(envelope).err().map(channel::TrySendError::into_inner)
        };
        self.shared.posting.fetch_sub(1, Ordering::SeqCst);
        match refused {
            Some(Envelope::Request(message) | Envelope::Notice(message)) => Err(SendError::Closed(message)),
            None | Some(Envelope::Close) => Ok(()),
        }
    }
}

impl<T> Clone for MailSender<T> {
    fn clone(&self) -> Self {
        Self { gate: self.gate.clone(), queue: self.queue.clone(), shared: Arc::clone(&self.shared) }
    }
}

/// The receiving end. Dropping it drops the messages that still wait, and with them their replies.
#[derive(Debug)]
pub struct MailReceiver<T> {
    tickets: channel::Receiver<()>,
    messages: channel::Receiver<Envelope<T>>,
    shared: Arc<Shared>,
    closed: bool,
}

impl<T> MailReceiver<T> {
    /// Waits for the next message.
    ///
    /// # Errors
    /// [`RecvError::Closed`] when the mailbox was closed, or all senders are gone, and nothing waits.
    pub fn recv(&mut self) -> Result<T, RecvError> {
        let envelope = if self.closed { None } else { self.messages.recv().ok() };
        self.open(envelope)
    }

    /// Waits for the next message until `deadline`. Under loom time does not pass: it waits for good.
    ///
    /// # Errors
    /// [`RecvError::Empty`] when time ran out, even if messages wait: a flood of them must not put off what is
    /// due. Else as [`recv`](Self::recv).
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvError> {
        if self.closed {
            return Err(RecvError::Closed);
        }
        if Instant::now() >= deadline {
            return Err(RecvError::Empty);
        }
        match self.messages.recv_deadline(deadline) {
            Ok(envelope) => self.open(Some(envelope)),
            Err(channel::RecvTimeoutError::Timeout) => Err(RecvError::Empty),
            Err(channel::RecvTimeoutError::Disconnected) => Err(RecvError::Closed),
        }
    }

    /// Takes the next message if one waits.
    ///
    /// # Errors
    /// [`RecvError::Empty`], else as [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<T, RecvError> {
        if self.closed {
            return Err(RecvError::Closed);
        }
        match self.messages.try_recv() {
            Ok(envelope) => self.open(Some(envelope)),
            Err(channel::TryRecvError::Empty) => Err(RecvError::Empty),
            Err(channel::TryRecvError::Disconnected) => Err(RecvError::Closed),
        }
    }

    fn open(&mut self, envelope: Option<Envelope<T>>) -> Result<T, RecvError> {
        match envelope {
            Some(Envelope::Request(message)) => {
                // Its ticket was issued before the message was sent, so one is there.
                let _ = self.tickets.try_recv();
                Ok(message)
            }
            Some(Envelope::Notice(message)) => {
                self.shared.free_notices.fetch_add(1, Ordering::AcqRel);
                Ok(message)
            }
            Some(Envelope::Close) | None => {
                self.closed = true;
                Err(RecvError::Closed)
            }
        }
    }
}

impl<T> Drop for MailReceiver<T> {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        loop {
            let settled = self.shared.posting.load(Ordering::SeqCst) == 0;
            while self.messages.try_recv().is_ok() {}
            if settled {
                return;
            }
            std::thread::yield_now();
        }
    }
}
