//! The mailbox under loom: crossbeam is opaque to the model checker, a mutexed queue is not.
//!
//! Same surface and promises as the mailbox of production.

use std::collections::VecDeque;
// Only the lock and the conditions are modelled: counting references would multiply the schedules.
use std::sync::Arc;
use std::time::Instant;

use super::{Condvar, Deadline, Mutex, Places, RecvError, SendError};

#[derive(Debug)]
struct Queue<T> {
    messages: VecDeque<(Kind, T)>,
    requests: usize,
    notices: usize,
    senders: usize,
    closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Notice,
}

#[derive(Debug)]
struct Shared<T> {
    places: Places,
    queue: Mutex<Queue<T>>,
    arrived: Condvar,
    room: Condvar,
}

/// Makes a mailbox. Messages arrive in the order in which they were sent, requests and notices alike.
pub fn mailbox<T>(places: Places) -> (MailSender<T>, MailReceiver<T>) {
    let queue = Queue { messages: VecDeque::new(), requests: 0, notices: 0, senders: 1, closed: false };
    let places = Places { requests: places.requests.max(1), ..places };
    let (arrived, room) = (Condvar::new(), Condvar::new());
    let shared = Arc::new(Shared { places, queue: Mutex::new(queue), arrived, room });
    (MailSender { shared: Arc::clone(&shared) }, MailReceiver { shared })
}

/// A sending end; clones send into the same mailbox.
#[derive(Debug)]
pub struct MailSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> MailSender<T> {
    /// Sends a request and waits while all request places are taken.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let mut queue = self.shared.queue.lock();
        while !queue.closed && queue.requests == self.shared.places.requests {
            queue = self.shared.room.wait(queue);
        }
        self.post(&mut queue, Kind::Request, message)
    }

    /// As [`send`](Self::send): time does not pass.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    pub fn send_until(&self, message: T, _deadline: Deadline) -> Result<(), SendError<T>> {
        self.send(message)
    }

    /// Sends a request if a place is free.
    ///
    /// # Errors
    /// [`SendError::Full`] or [`SendError::Closed`].
    pub fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        self.post(&mut self.shared.queue.lock(), Kind::Request, message)
    }

    /// Sends a notice into a place that the caller owns. Never waits.
    ///
    /// # Errors
    /// [`SendError::Full`] if the caller owns no place after all, or [`SendError::Closed`].
    pub fn notify(&self, message: T) -> Result<(), SendError<T>> {
        self.post(&mut self.shared.queue.lock(), Kind::Notice, message)
    }

    /// Takes no more messages; the receiver still gets those that were sent before. Twice is fine.
    pub fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.arrived.notify_all();
        self.shared.room.notify_all();
    }

    fn post(&self, queue: &mut Queue<T>, kind: Kind, message: T) -> Result<(), SendError<T>> {
        if queue.closed {
            return Err(SendError::Closed(message));
        }
        let places = self.shared.places;
        let (taken, limit) = match kind {
            Kind::Request => (&mut queue.requests, places.requests),
            Kind::Notice => (&mut queue.notices, places.notices),
        };
        if *taken == limit {
            return Err(SendError::Full(message));
        }
        *taken += 1;
        queue.messages.push_back((kind, message));
        self.shared.arrived.notify_one();
        Ok(())
    }
}

impl<T> Clone for MailSender<T> {
    fn clone(&self) -> Self {
        self.shared.queue.lock().senders += 1;
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for MailSender<T> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.senders -= 1;
        if queue.senders == 0 {
            queue.closed = true;
            self.shared.arrived.notify_all();
        }
    }
}

/// The receiving end. Dropping it drops the messages that still wait, and with them their replies.
#[derive(Debug)]
pub struct MailReceiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> MailReceiver<T> {
    /// Waits for the next message.
    ///
    /// # Errors
    /// [`RecvError::Closed`] when the mailbox was closed, or all senders are gone, and nothing waits.
    pub fn recv(&mut self) -> Result<T, RecvError> {
        let mut queue = self.shared.queue.lock();
        loop {
            match self.take(&mut queue) {
                Err(RecvError::Empty) => queue = self.shared.arrived.wait(queue),
                result => return result,
            }
        }
    }

    /// Waits for the next message until `deadline`. Under loom time does not pass: it waits for good.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_deadline(&mut self, _deadline: Instant) -> Result<T, RecvError> {
        self.recv()
    }

    /// Takes the next message if one waits.
    ///
    /// # Errors
    /// [`RecvError::Empty`], else as [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<T, RecvError> {
        self.take(&mut self.shared.queue.lock())
    }

    fn take(&self, queue: &mut Queue<T>) -> Result<T, RecvError> {
        match queue.messages.pop_front() {
            Some((Kind::Request, message)) => {
                queue.requests -= 1;
                self.shared.room.notify_one();
                Ok(message)
            }
            Some((Kind::Notice, message)) => {
                queue.notices -= 1;
                Ok(message)
            }
            None if queue.closed => Err(RecvError::Closed),
            None => Err(RecvError::Empty),
        }
    }
}

impl<T> Drop for MailReceiver<T> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.closed = true;
        // Dropped outside the lock: a message may hold a sender of this very mailbox.
        let undelivered = std::mem::take(&mut queue.messages);
        self.shared.room.notify_all();
        drop(queue);
        drop(undelivered);
    }
}
