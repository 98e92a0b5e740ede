//! The actor that reads counters after their dispatch retired, and delivers them.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wavescope_core::actor::{Actor, Reply};
use wavescope_core::sync::atomic::Ordering;
use wavescope_core::{ContextId, CounterRecord, DispatchCounters, DispatchTimes, LossReason, Outcome, Token};

use crate::service::{Delivery, Shared};
use crate::uses::{AgentUses, Counted, Ended, parts};

/// What the actor is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// The first one.
    Begin,
    /// Counted dispatches of the agent at `place` retired, or never will.
    Retired { place: usize },
    /// Answer when everything sent before was delivered.
    Flush(Reply<()>),
}

/// Reads, returns, delivers: in this order, so that a slow client does not keep instances.
pub(crate) struct CountingActor {
    context: ContextId,
    shared: Arc<Shared>,
    delivery: Delivery,
    /// Grants to be returned, kept for its allocation.
    returned: Vec<Token>,
    /// Values of one read, likewise.
    values: Vec<u64>,
    /// What retired, likewise.
    retired: Vec<Ended>,
    /// The client's function panicked before.
    panicked: bool,
}

impl Actor for CountingActor {
    type Message = Message;
    const NAME: &'static str = "wavescope-count";

    fn handle(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Begin => self.shared.actor_begins(),
            Message::Retired { place } => self.take_retired(place),
            Message::Flush(reply) => reply.send(()),
        }
        ControlFlow::Continue(())
    }
}

impl CountingActor {
    pub(crate) fn new(context: ContextId, shared: Arc<Shared>, delivery: Delivery) -> Self {
        let (returned, values, retired) = (Vec::new(), Vec::new(), Vec::new());
        Self { context, shared, delivery, returned, values, retired, panicked: false }
    }

    fn take_retired(&mut self, place: usize) {
        let shared = Arc::clone(&self.shared);
        let Some(uses) = shared.uses.get(place) else { return };
        let mut retired = std::mem::take(&mut self.retired);
        uses.take_retired(&mut retired);
        for ended in retired.drain(..) {
            self.retired(uses, ended);
        }
        self.retired = retired;
    }

    fn retired(&mut self, uses: &AgentUses, ended: Ended) {
        let Ended { token, outcome, company } = ended;
        let (_, slot) = parts(token);
        let Some(counted) = uses.in_flight.lock().get(slot).cloned() else { return };
        let (records, times, lost) = match outcome {
            Outcome::Completed(times) => match self.read(&counted) {
                Some(records) => (records, times, None),
                None => (Vec::new(), times, Some(LossReason::Unreadable)),
            },
            Outcome::Lost(reason) => (Vec::new(), DispatchTimes::default(), Some(reason)),
        };
        if lost.is_some() {
            self.shared.tally.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.put_back(&counted, lost);
        // Only now: with nothing in flight no grant is out, and the service may take another subscription.
        uses.in_flight.lock().remove(slot);
        let (Counted { dispatch, user_data, .. }, context) = (counted, self.context);
        self.deliver(DispatchCounters { context, dispatch, times, user_data, records, lost, company });
    }

    fn deliver(&mut self, counters: DispatchCounters) {
        match &self.delivery {
            // The stream counts what its policy drops.
            Delivery::Stream(stream) => drop(stream.send(counters)),
            Delivery::Callback(callback) => {
                let called = catch_unwind(AssertUnwindSafe(|| callback(counters)));
                if called.is_err() && !std::mem::replace(&mut self.panicked, true) {
                    tracing::error!(context = %self.context, "the client's function for counters panicked");
                }
            }
        }
    }

    /// Reads the output of an instance; `None`, with a log, if that fails.
    fn read(&mut self, counted: &Counted) -> Option<Vec<CounterRecord>> {
        let instance = counted.config.pool.lock().instance(counted.used);
        let instance = instance.lock();
        self.values.clear();
        let values = &mut self.values;
        let read = instance.iterate(&mut |_, value| {
            values.push(value);
            ControlFlow::Continue(())
        });
        read.inspect_err(
            |error| tracing::error!(%error, dispatch = %counted.dispatch.id, "counters could not be read"),
        )
        .ok()?;
        Some(counted.config.records(self.values.iter().copied()))
    }

    /// Returns an instance, cleared for its next use, unless the GPU may still write its output.
    fn put_back(&mut self, counted: &Counted, lost: Option<LossReason>) {
        let mut pool = counted.config.pool.lock();
        if lost.is_some_and(LossReason::gpu_may_still_write) {
            pool.give_up(counted.used, &mut self.returned);
        } else {
            let instance = pool.instance(counted.used);
            drop(pool);
            instance.lock().clear();
            pool = counted.config.pool.lock();
            pool.put_back(counted.used, &mut self.returned);
        }
        drop(pool);
        for token in self.returned.drain(..) {
            self.shared.grants.give_back(token);
        }
    }
}

impl Drop for CountingActor {
    fn drop(&mut self) {
        self.shared.actor_ended();
    }
}
