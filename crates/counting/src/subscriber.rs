//! The service on the submitting thread: asked before a dispatch is enqueued, told what became of it.

use std::sync::Arc;

use wavescope_core::actor::Address;
use wavescope_core::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::{Answer, Dispatch, DispatchEvent, DispatchSubscriber, Grant, ProgramSink, Token};

use crate::actor::Message;
use crate::config::CounterConfig;
use crate::programs;
use crate::service::{Choose, Shared};
use crate::uses::{AgentUses, Counted, Ended, holds, parts, token};

/// What interception asks.
pub(crate) struct Subscriber {
    shared: Arc<Shared>,
    choose: Arc<Choose>,
    actor: Address<Message>,
}

impl Subscriber {
    pub(crate) fn new(shared: Arc<Shared>, choose: Arc<Choose>, actor: Address<Message>) -> Self {
        Self { shared, choose, actor }
    }

    /// Lends an instance to `dispatch`. `None` if there is none, or no place to remember it.
    fn count(
        &self,
        place: usize,
        config: Arc<CounterConfig>,
        dispatch: &Dispatch,
        user_data: u64,
        sink: &mut ProgramSink<'_>,
    ) -> Option<Answer> {
        let uses = &self.shared.uses[place];
        let mut in_flight = uses.in_flight.lock();
        if in_flight.len() == in_flight.capacity() || self.shared.is_gone() {
            return None;
        }
        let mut pool = config.pool.lock();
        let taken = pool.take(dispatch.queue, |first| programs::instance(&config, first))?;
        let counted =
            Counted { config: Arc::clone(&config), used: taken.used, dispatch: *dispatch, user_data };
        // There is room: it was looked for under this lock.
        let slot = in_flight.insert(counted).ok()?;
        let token = token(place, taken.holds, slot);
        if taken.holds {
            pool.hold(dispatch.queue, token);
        }
        drop((pool, in_flight));
        if let Some(enable) = uses.enable(dispatch.queue, &config) {
            sink.before(&enable);
        }
        sink.before(&taken.packets.start);
        sink.after(&taken.packets.read);
        sink.after(&taken.packets.stop);
        let grant = if taken.holds { Grant::UntilReturned } else { Grant::UntilRetired };
        Some(Answer::Instrument { token, grant })
    }

    fn place_of(&self, dispatch: &Dispatch) -> Option<usize> {
        self.shared.uses.iter().position(|uses: &AgentUses| uses.agent == dispatch.agent)
    }

    /// A dispatch that holds its grant is on its way: perhaps what it would wait for was read already.
    fn announce(&self, token: Token, dispatch: &Dispatch) {
        let (place, slot) = parts(token);
        let Some(uses) = self.shared.uses.get(place) else { return };
        let config = uses.in_flight.lock().get(slot).map(|counted| Arc::clone(&counted.config));
        let is_read = config.is_some_and(|config| config.pool.lock().announce(dispatch.queue, token));
        if is_read || self.shared.is_gone() {
            self.shared.grants.give_back(token);
        }
    }

    /// Passes a dispatch on to the actor. If that ended, nobody reads the counters, but the agent must go on.
    fn retired(&self, ended: Ended) {
        let place = parts(ended.token).0;
        let Some(uses) = self.shared.uses.get(place) else { return };
        let is_first = uses.retire(ended);
        let told = || matches!(self.actor.notify(Message::Retired { place }), Ok(true));
        if self.shared.is_gone() || is_first && !told() {
            self.shared.abandon_retired(uses);
        }
    }
}

impl DispatchSubscriber for Subscriber {
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let add = |number: &AtomicU64| number.fetch_add(1, Ordering::Relaxed);
        let tally = &self.shared.tally;
        add(&tally.seen);
        let choice = (self.choose)(dispatch);
        let config = choice.config.filter(|config| config.agent() == dispatch.agent);
        let (Some(config), Some(place)) = (config, self.place_of(dispatch)) else {
            add(&tally.declined);
            return Answer::Decline;
        };
        let answer = self.count(place, config, dispatch, choice.user_data, sink);
        add(if answer.is_some() { &tally.counted } else { &tally.skipped });
        answer.unwrap_or(Answer::Decline)
    }

    fn publish(&self, event: DispatchEvent) {
        match event {
            DispatchEvent::Dispatched { token, dispatch } if holds(token) => self.announce(token, &dispatch),
            DispatchEvent::Dispatched { .. } => {}
            DispatchEvent::Retired { token, outcome, company } => {
                self.retired(Ended { token, outcome, company })
            }
        }
    }
}
