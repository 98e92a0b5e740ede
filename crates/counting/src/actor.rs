//! The actor that reads counters after their dispatch retired, and delivers them.

use std::ops::ControlFlow;
use std::sync::Arc;

use wavescope_core::actor::{Actor, Reply};
use wavescope_core::sync::atomic::Ordering;
use wavescope_core::{ContextId, CounterRecord, DispatchCounters, DispatchTimes, LossReason, Outcome, Token};

use crate::service::{Delivery, Shared};
use crate::uses::{Counted, parts};

/// What the actor is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// A counted dispatch retired, or never will.
    Retired { token: Token, outcome: Outcome },
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
}

impl Actor for CountingActor {
    type Message = Message;
    const NAME: &'static str = "wavescope-count";

    fn handle(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Retired { token, outcome } => self.retired(token, outcome),
            Message::Flush(reply) => reply.send(()),
        }
        ControlFlow::Continue(())
    }
}

impl CountingActor {
    pub(crate) fn new(context: ContextId, shared: Arc<Shared>, delivery: Delivery) -> Self {
        Self { context, shared, delivery, returned: Vec::new(), values: Vec::new() }
    }

    fn retired(&mut self, token: Token, outcome: Outcome) {
        let (place, slot) = parts(token);
        let counted = self.shared.uses.get(place).and_then(|uses| uses.in_flight.lock().remove(slot));
        let Some(counted) = counted else { return };
        let (records, times, lost) = match outcome {
            Outcome::Completed(times) => (self.read(&counted), times, None),
            Outcome::Lost(reason) => {
                self.shared.tally.lost.fetch_add(1, Ordering::Relaxed);
                (Vec::new(), DispatchTimes::default(), Some(reason))
            }
        };
        self.put_back(&counted, lost);
        let Counted { dispatch, user_data, .. } = counted;
        let counters = DispatchCounters { context: self.context, dispatch, times, user_data, records, lost };
        match &self.delivery {
            // The stream counts what its policy drops.
            Delivery::Stream(stream) => drop(stream.send(counters)),
            Delivery::Callback(callback) => callback(counters),
        }
    }

    /// Reads the output of an instance and clears it for its next use.
    fn read(&mut self, counted: &Counted) -> Vec<CounterRecord> {
        let instance = counted.config.pool.lock().instance(counted.used);
        let instance = instance.lock();
        self.values.clear();
        let values = &mut self.values;
        let read = instance.iterate(&mut |_, value| {
            values.push(value);
            ControlFlow::Continue(())
        });
        if let Err(error) = read {
            tracing::error!(%error, dispatch = %counted.dispatch.id, "counters could not be read");
            return Vec::new();
        }
        instance.clear();
        counted.config.records(self.values.iter().copied())
    }

    fn put_back(&mut self, counted: &Counted, lost: Option<LossReason>) {
        let mut pool = counted.config.pool.lock();
        match lost {
            // The runtime destroyed the queue, so nothing writes the output any more.
            None | Some(LossReason::QueueDestroyed) => pool.put_back(counted.used, &mut self.returned),
            Some(_) => pool.give_up(counted.used, &mut self.returned),
        }
        drop(pool);
        for token in self.returned.drain(..) {
            self.shared.return_grant(token);
        }
    }
}
