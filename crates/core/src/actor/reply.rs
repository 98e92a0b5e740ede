//! The one answer to a request, and the wait for it.

use std::time::Duration;

use crate::Error;
use crate::sync::{Arc, Condvar, Deadline, Mutex};

#[derive(Debug)]
enum Answer<T> {
    Awaited,
    Given(T),
    /// The [`Reply`] was dropped unanswered, or the answer was already taken.
    Gone,
}

#[derive(Debug)]
struct Shared<T> {
    answer: Mutex<Answer<T>>,
    given: Condvar,
}

impl<T> Shared<T> {
    fn settle(&self, answer: Answer<T>) {
        *self.answer.lock() = answer;
        self.given.notify_all();
    }
}

/// The right to answer a request once. Dropping it unanswered tells the waiter that the actor is gone.
#[derive(Debug)]
pub struct Reply<T> {
    shared: Option<Arc<Shared<T>>>,
}

/// The wait for an answer.
#[derive(Debug)]
pub struct Pending<T> {
    actor: &'static str,
    shared: Arc<Shared<T>>,
}

/// Makes both ends of one answer of `actor`.
pub fn reply<T>(actor: &'static str) -> (Reply<T>, Pending<T>) {
    let shared = Arc::new(Shared { answer: Mutex::new(Answer::Awaited), given: Condvar::new() });
    (Reply { shared: Some(Arc::clone(&shared)) }, Pending { actor, shared })
}

impl<T> Reply<T> {
    /// Answers. A waiter that gave up is none of the actor's business. Never waits.
    pub fn send(mut self, value: T) {
        if let Some(shared) = self.shared.take() {
            shared.settle(Answer::Given(value));
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        #[cfg(loom)]
        if crate::fault::is(crate::fault::Fault::SilentUnansweredReply) {
            return;
        }
        if let Some(shared) = self.shared.take() {
            shared.settle(Answer::Gone);
        }
    }
}

impl<T> Pending<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// [`Error::ActorGone`] when the actor ended or panicked without answering.
    pub fn wait(self) -> Result<T, Error> {
        let mut answer = self.shared.answer.lock();
        while matches!(*answer, Answer::Awaited) {
            answer = self.shared.given.wait(answer);
        }
        self.take(&mut answer)
    }

    /// Waits at most `timeout`; under loom time does not pass.
    ///
    /// # Errors
    /// [`Error::ActorSilent`] when time ran out, else as [`wait`](Self::wait).
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, Error> {
        let deadline = Deadline::after(timeout);
        let mut answer = self.shared.answer.lock();
        while matches!(*answer, Answer::Awaited) {
            let (guard, timed_out) = self.shared.given.wait_timeout(answer, deadline.left());
            answer = guard;
            if timed_out && matches!(*answer, Answer::Awaited) {
                return Err(Error::ActorSilent { actor: self.actor, waited: timeout });
            }
        }
        self.take(&mut answer)
    }

    /// The answer if it is there; `None` while the actor still owes it.
    pub fn try_take(&mut self) -> Option<Result<T, Error>> {
        let mut answer = self.shared.answer.lock();
        match *answer {
            Answer::Awaited => None,
            Answer::Given(_) | Answer::Gone => Some(self.take(&mut answer)),
        }
    }

    fn take(&self, answer: &mut Answer<T>) -> Result<T, Error> {
        match std::mem::replace(answer, Answer::Gone) {
            Answer::Given(value) => Ok(value),
            Answer::Awaited | Answer::Gone => Err(Error::ActorGone { actor: self.actor }),
        }
    }
}
