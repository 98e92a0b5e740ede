//! Counters for each kernel dispatch: what a client configures, starts and stops.
//!
//! ```text
//!   (new) ──▶ Stopped ──start: claim, subscribe──▶ Active ──stop: quiesce, drain, unsubscribe, flush──▶ Stopped
//!                                                    │                                                 ▲
//!                                                    └──stop: a callback does not return──▶ Silent ────┘ stop again
//! ```
//!
//! `start` on an active service and `stop` on a stopped one change nothing. In between, the dispatch callback chooses
//! a configuration for each dispatch on the submitting thread, the actor reads the instance after the dispatch
//! retired and delivers.
//!
//! Dropped while active, the service stops first. Two places where its thread is of no use: in a forked child, where it
//! does not exist, everything is refused or does nothing; and while a library's constructor runs in the thread that
//! made the service, since no thread begins as long as the loader's lock is held. It is not waited for there.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::actor::{ActorThread, Address, spawn};
use wavescope_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wavescope_core::sync::{Deadline, Mutex, Places};
use wavescope_core::{
    AgentId, Claim, ClaimTable, ContextId, Dispatch, DispatchCounters, DispatchId, DispatchSubscriber,
    GrantReturns, Interception, InterceptionError, Outcome, RecordSink, Service, Subscription,
    SubscriptionId,
};

use crate::Error;
use crate::actor::{CountingActor, Message};
use crate::config::CounterConfig;
use crate::subscriber::Subscriber;
use crate::uses::{AgentUses, Ended, holds, parts, token};

/// Requests of clients that may wait for the actor.
const REQUEST_PLACES: usize = 16;

/// Between two looks at what has been read, where nobody tells.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// How long a service that is dropped waits for its dispatches.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// What the dispatch callback wants for one dispatch.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// What to count; `None` leaves the dispatch alone, though it is serialized like the others. A configuration of
    /// another agent counts as none.
    pub config: Option<Arc<CounterConfig>>,
    /// Comes back with the counters.
    pub user_data: u64,
}

/// The dispatch callback. It runs on the submitting thread, inside the runtime's write hook: short, and without calls
/// that wait for the GPU.
pub type Choose = dyn Fn(&Dispatch) -> Choice + Send + Sync;

/// Where counters go. Both run on the counting thread, with no lock held.
pub enum Delivery {
    /// Into a stream.
    Stream(RecordSink<DispatchCounters>),
    /// To a function, one call for each dispatch. A panic of it is caught and costs that dispatch only.
    Callback(Box<dyn Fn(DispatchCounters) + Send>),
}

/// What a service needs.
pub struct Setup {
    /// The context it works for.
    pub context: ContextId,
    /// The agents it counts on. Others are neither asked about nor serialized.
    pub agents: Vec<AgentId>,
    /// Who rewrites the packets.
    pub interception: Arc<dyn Interception>,
    /// The claims of all contexts of the process.
    pub claims: Arc<ClaimTable>,
    /// The dispatch callback.
    pub choose: Arc<Choose>,
    /// Where counters go.
    pub delivery: Delivery,
}

/// What became of the dispatches so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Dispatches that the callback was asked about.
    pub seen: u64,
    /// Counted: delivered, or still in flight.
    pub counted: u64,
    /// The callback chose nothing.
    pub declined: u64,
    /// No instance or place was to be had.
    pub skipped: u64,
    /// Of the counted: they never completed, or their counters could not be read.
    pub lost: u64,
}

/// The dispatch counting service of one context. Dropped while active, it stops as [`stop`](Self::stop) does, within ten
/// seconds.
pub struct DispatchCounting {
    context: ContextId,
    agents: Vec<AgentId>,
    claims: Arc<ClaimTable>,
    shared: Arc<Shared>,
    address: Address<Message>,
    /// `None` only at the very end.
    thread: Option<ActorThread<Message>>,
    /// Id of the process that the thread lives in.
    process: u32,
    subscriber: Arc<Subscriber>,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    Starting,
    Active(SubscriptionId),
    Stopping,
    /// Nobody is asked any more, but a callback has not returned: what it answers is serialized and counted still.
    Silent(SubscriptionId),
}

/// What subscriber, actor and service share.
pub(crate) struct Shared {
    pub(crate) uses: Vec<AgentUses>,
    pub(crate) interception: Arc<dyn Interception>,
    pub(crate) tally: Tally,
    pub(crate) grants: GrantReturns,
    /// The actor began to handle messages.
    begun: AtomicBool,
    /// The actor ended: nothing is read any more.
    gone: AtomicBool,
}

/// The numbers behind [`Summary`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) seen: AtomicU64,
    pub(crate) counted: AtomicU64,
    pub(crate) declined: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) lost: AtomicU64,
}

impl Shared {
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    pub(crate) fn actor_begins(&self) {
        self.begun.store(true, Ordering::Release);
    }

    /// The actor ended. What it would have read is not missed, but an agent must not wait for its grants: all go
    /// back, also of dispatches that hold none; interception ignores those.
    pub(crate) fn actor_ended(&self) {
        self.gone.store(true, Ordering::SeqCst);
        for (place, uses) in self.uses.iter().enumerate() {
            let slots: Vec<_> = uses.in_flight.lock().iter().map(|(slot, _)| slot).collect();
            slots.into_iter().for_each(|slot| self.grants.give_back(token(place, true, slot)));
            self.abandon_retired(uses);
        }
    }

    /// Gives up what retired on an agent with nobody to read it.
    pub(crate) fn abandon_retired(&self, uses: &AgentUses) {
        let mut retired = Vec::new();
        uses.take_retired(&mut retired);
        retired.into_iter().for_each(|ended| self.abandon(uses, ended));
    }

    fn abandon(&self, uses: &AgentUses, ended: Ended) {
        let Ended { token, outcome, .. } = ended;
        self.tally.lost.fetch_add(1, Ordering::Relaxed);
        // An output that the GPU may still write stays, and with it the entry that keeps it.
        if !matches!(outcome, Outcome::Lost(reason) if reason.gpu_may_still_write()) {
            let counted = uses.in_flight.lock().remove(parts(token).1);
            drop(counted);
        }
        if holds(token) {
            self.grants.give_back(token);
        }
    }

    fn in_flight_ids(&self) -> impl Iterator<Item = DispatchId> {
        let of_agent = |uses: &AgentUses| -> Vec<_> {
            uses.in_flight.lock().iter().map(|(_, counted)| counted.dispatch.id).collect()
        };
        self.uses.iter().flat_map(of_agent)
    }

    fn in_flight(&self) -> usize {
        self.uses.iter().map(|uses| uses.in_flight.lock().len()).sum()
    }
}

impl DispatchCounting {
    /// Makes the service and its actor; nothing is counted yet.
    ///
    /// # Errors
    /// [`Error::Actor`] without a thread for the actor.
    pub fn new(setup: Setup) -> Result<Self, Error> {
        let Setup { context, agents, interception, claims, choose, delivery } = setup;
        let shared = Arc::new(Shared {
            uses: agents.iter().map(|&agent| AgentUses::new(agent)).collect(),
            grants: GrantReturns::new(Arc::clone(&interception)),
            interception,
            tally: Tally::default(),
            begun: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        });
        // An agent has at most one notice on its way, and there is one at the beginning: publishing never waits.
        let places = Places { requests: REQUEST_PLACES, notices: agents.len() + 1 };
        let thread = spawn(CountingActor::new(context, Arc::clone(&shared), delivery), places)?;
        let address = thread.address().clone();
        // There is a place, and nobody closed the mailbox.
        let _ = address.notify(Message::Begin);
        let subscriber = Arc::new(Subscriber::new(Arc::clone(&shared), choose, address.clone()));
        let (thread, process, phase) = (Some(thread), std::process::id(), Mutex::new(Phase::Stopped));
        Ok(Self { context, agents, claims, shared, address, thread, process, subscriber, phase })
    }

    /// Begins to count. Active or starting already is fine.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another context measures one of the agents; [`Error::Busy`] while a stop is under way, or
    /// dispatches of the last time are still in flight or a callback is asked about one; [`Error::Actor`] if the actor is gone; [`Error::Interception`], also
    /// in a forked child. Nothing is kept then.
    pub fn start(&self) -> Result<(), Error> {
        if self.is_parents() {
            return Err(InterceptionError::ShutDown.into());
        }
        if self.shared.is_gone() {
            return Err(wavescope_core::Error::ActorGone { actor: self.address.name() }.into());
        }
        {
            let mut phase = self.phase.lock();
            let in_flight = self.shared.in_flight();
            match *phase {
                Phase::Active(_) | Phase::Starting => return Ok(()),
                Phase::Stopped if in_flight == 0 => *phase = Phase::Starting,
                Phase::Stopped | Phase::Stopping => {
                    return Err(Error::Busy { context: self.context, in_flight });
                }
                // What the callback is asked about will be.
                Phase::Silent(_) => {
                    return Err(Error::Busy { context: self.context, in_flight: in_flight + 1 });
                }
            }
        }
        let started = self.claim_and_subscribe();
        *self.phase.lock() = started.as_ref().map_or(Phase::Stopped, |id| Phase::Active(*id));
        started.map(drop)
    }

    /// Stops counting: waits until every dispatch in flight retired and its counters were delivered, at most `timeout`
    /// for all of it. Stopped already is fine; called while another thread stops, it returns at once.
    ///
    /// From inside a dispatch callback it cannot wait for dispatches of the batch at hand: it then ends with
    /// [`Error::Interception`], and their counters are delivered later. In a forked child it does nothing.
    ///
    /// # Errors
    /// [`Error::Interception`] if dispatches did not retire within `timeout`, [`Error::Actor`] if they were not
    /// delivered within it; they are delivered later. The service is stopped all the same. But if a dispatch callback did
    /// not return ([`InterceptionError::CallbackBusy`], after the time that interception allows it), nobody is asked any more
    /// and the agents stay claimed: call it again.
    pub fn stop(&self, timeout: Duration) -> Result<(), Error> {
        if self.is_parents() {
            return Ok(());
        }
        let deadline = Deadline::after(timeout);
        let id = {
            let mut phase = self.phase.lock();
            let (Phase::Active(id) | Phase::Silent(id)) = *phase else { return Ok(()) };
            *phase = Phase::Stopping;
            id
        };
        let interception = &self.shared.interception;
        let silent = interception.quiesce(id);
        if let Err(error @ InterceptionError::CallbackBusy { .. }) = silent {
            *self.phase.lock() = Phase::Silent(id);
            return Err(error.into());
        }
        let stopped = silent.and_then(|()| {
            // The hold is given back only after the drain: until then kernels must not overlap.
            let drained = interception.drain(id, deadline.left());
            interception.unsubscribe(id).and(drained)
        });
        // The drain may have taken all the time there was, and succeeded.
        let flushed = self.deliver_read(deadline);
        self.release_claims();
        *self.phase.lock() = Phase::Stopped;
        stopped?;
        flushed
    }

    /// Waits until the counters of every dispatch that was enqueued before this call were delivered.
    ///
    /// # Errors
    /// [`Error::Interception`] or [`Error::Undelivered`] if one of them has not retired after `timeout`. [`Error::Actor`] if the
    /// actor does not answer within that time, or is gone; inside the delivery function, which the actor would wait for, at
    /// once.
    pub fn flush(&self, timeout: Duration) -> Result<(), Error> {
        if self.is_parents() {
            return Ok(());
        }
        let deadline = Deadline::after(timeout);
        if self.is_actor() {
            return self.deliver_read(deadline);
        }
        let subscription = match *self.phase.lock() {
            Phase::Active(id) | Phase::Silent(id) => Some(id),
            Phase::Stopped | Phase::Starting | Phase::Stopping => None,
        };
        if let Some(id) = subscription {
            match self.shared.interception.settle(id, timeout) {
                // It was stopped meanwhile.
                Ok(()) | Err(InterceptionError::UnknownSubscription(_)) => {}
                Err(error) => return Err(error.into()),
            }
        } else {
            self.wait_read(deadline, timeout)?;
        }
        self.deliver_read(deadline)
    }

    /// Waits until everything was delivered that was read.
    fn deliver_read(&self, deadline: Deadline) -> Result<(), Error> {
        if !self.has_begun() && self.shared.in_flight() == 0 {
            return Ok(());
        }
        let timeout = if self.is_actor() { Duration::ZERO } else { deadline.left_or_a_moment() };
        Ok(self.address.ask_within(Message::Flush, timeout)?)
    }

    /// Waits until what was in flight has been read, where no subscription says so any more.
    fn wait_read(&self, deadline: Deadline, waited: Duration) -> Result<(), Error> {
        let last = self.shared.in_flight_ids().max();
        loop {
            let in_flight = self.shared.in_flight_ids().filter(|id| Some(*id) <= last).count();
            if in_flight == 0 {
                return Ok(());
            }
            if deadline.is_over() {
                return Err(Error::Undelivered { context: self.context, in_flight, waited });
            }
            std::thread::park_timeout(BETWEEN_LOOKS.min(deadline.left()));
        }
    }

    /// Whether dispatches are asked about.
    pub fn is_active(&self) -> bool {
        matches!(*self.phase.lock(), Phase::Active(_))
    }

    /// What became of the dispatches so far.
    pub fn summary(&self) -> Summary {
        let tally = &self.shared.tally;
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Summary {
            seen: read(&tally.seen),
            counted: read(&tally.counted),
            declined: read(&tally.declined),
            skipped: read(&tally.skipped),
            lost: read(&tally.lost),
        }
    }

    /// Whether this is a forked child: the thread is not there, and whatever was locked stays locked.
    fn is_parents(&self) -> bool {
        self.process != std::process::id()
    }

    /// Whether the caller is the delivery function.
    fn is_actor(&self) -> bool {
        self.thread.as_ref().is_some_and(ActorThread::is_current)
    }

    fn has_begun(&self) -> bool {
        self.shared.begun.load(Ordering::Acquire)
    }

    fn claim_and_subscribe(&self) -> Result<SubscriptionId, Error> {
        let wanted: Vec<_> = self.agents.iter().map(|&agent| (agent, Claim::DispatchCounting)).collect();
        self.claims.claim(self.context, &wanted)?;
        // Nothing of the last run is in flight, so none of its grants is out.
        self.shared.grants.unsubscribed();
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Subscriber>::clone(&self.subscriber);
        let subscription = Subscription {
            context: self.context,
            service: Service::DispatchCounting,
            agents: self.agents.clone(),
            serialize: true,
            subscriber,
        };
        let id = self.shared.interception.subscribe(subscription).inspect_err(|_| self.release_claims())?;
        self.shared.grants.subscribed(id);
        Ok(id)
    }

    /// After a stop that failed, for good: interception forgets the service though it may be inside a callback.
    fn abandon(&self) {
        let Phase::Silent(id) = *self.phase.lock() else { return };
        if let Err(error) = self.shared.interception.unsubscribe(id) {
            tracing::debug!(%error, context = %self.context, "unsubscribed without being quiet");
        }
        self.release_claims();
    }

    fn release_claims(&self) {
        for &agent in &self.agents {
            self.claims.release(self.context, agent, Claim::DispatchCounting);
        }
    }
}

impl Drop for DispatchCounting {
    fn drop(&mut self) {
        let deadline = Deadline::after(DROP_TIMEOUT);
        if let Err(error) = self.stop(deadline.left()) {
            tracing::warn!(%error, context = %self.context, "a service was dropped while active");
            self.abandon();
        }
        // Else the thread cannot begin, or is in a function of the client that does not return.
        let ends = self.is_actor() || self.has_begun() && self.deliver_read(deadline).is_ok();
        if self.is_parents() {
            std::mem::forget(self.thread.take());
        } else if !ends {
            self.address.close();
            std::mem::forget(self.thread.take());
            self.shared.actor_ended();
        }
    }
}

impl std::fmt::Debug for DispatchCounting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DispatchCounting").field("context", &self.context).finish_non_exhaustive()
    }
}
