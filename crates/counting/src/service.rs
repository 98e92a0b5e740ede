//! Counters for each kernel dispatch: what a client configures, starts and stops.
//!
//! ```text
//!   (new) ──▶ Stopped ──start: claim, subscribe──▶ Active ──stop: quiesce, drain, unsubscribe, flush──▶ Stopped
//! ```
//!
//! `start` on an active service and `stop` on a stopped one change nothing. In between, the dispatch callback chooses
//! a configuration for each dispatch on the submitting thread, the actor reads the instance after the dispatch
//! retired and delivers.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::actor::{ActorThread, spawn};
use wavescope_core::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::sync::{Mutex, Places};
use wavescope_core::{
    AgentId, Claim, ClaimTable, ContextId, Dispatch, DispatchCounters, DispatchSubscriber, Interception,
    RecordSink, Service, Subscription, SubscriptionId, Token,
};

use crate::Error;
use crate::actor::{CountingActor, Message};
use crate::config::CounterConfig;
use crate::subscriber::Subscriber;
use crate::uses::{AgentUses, CAPACITY};

/// Requests of clients that may wait for the actor.
const REQUEST_PLACES: usize = 16;

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
    /// To a function, one call for each dispatch.
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
    /// Of the counted: they never completed.
    pub lost: u64,
}

/// The dispatch counting service of one context.
pub struct DispatchCounting {
    context: ContextId,
    agents: Vec<AgentId>,
    claims: Arc<ClaimTable>,
    shared: Arc<Shared>,
    actor: ActorThread<Message>,
    subscriber: Arc<Subscriber>,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    Starting,
    Active(SubscriptionId),
    Stopping,
}

/// What subscriber, actor and service share.
pub(crate) struct Shared {
    pub(crate) uses: Vec<AgentUses>,
    pub(crate) interception: Arc<dyn Interception>,
    pub(crate) tally: Tally,
    grants: GrantReturns,
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

/// Grants on their way back. The subscription's id is known only when `subscribe` returned, but dispatches may be
/// counted before that.
#[derive(Debug, Default)]
struct GrantReturns(Mutex<(Option<SubscriptionId>, Vec<Token>)>);

impl Shared {
    /// Lets the agent go on behind the dispatch of `token`.
    pub(crate) fn return_grant(&self, token: Token) {
        let id = {
            let mut grants = self.grants.0.lock();
            match grants.0 {
                Some(id) => id,
                None => return grants.1.push(token),
            }
        };
        self.interception.return_grant(id, token);
    }

    fn subscribed(&self, id: SubscriptionId) {
        let waiting = {
            let mut grants = self.grants.0.lock();
            grants.0 = Some(id);
            std::mem::take(&mut grants.1)
        };
        for token in waiting {
            self.interception.return_grant(id, token);
        }
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
            interception,
            tally: Tally::default(),
            grants: GrantReturns::default(),
        });
        // One place for each dispatch in flight: publishing never waits.
        let places = Places { requests: REQUEST_PLACES, notices: CAPACITY * agents.len() };
        let actor = spawn(CountingActor::new(context, Arc::clone(&shared), delivery), places)?;
        let subscriber = Subscriber::new(Arc::clone(&shared), choose, actor.address().clone());
        let subscriber = Arc::new(subscriber);
        Ok(Self { context, agents, claims, shared, actor, subscriber, phase: Mutex::new(Phase::Stopped) })
    }
    /// Begins to count. Active or starting already is fine.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another context measures one of the agents; [`Error::Busy`] while a stop is under way or
    /// dispatches of the last time are still in flight; [`Error::Interception`]. Nothing is kept then.
    pub fn start(&self) -> Result<(), Error> {
        {
            let mut phase = self.phase.lock();
            let in_flight = self.shared.in_flight();
            match *phase {
                Phase::Active(_) | Phase::Starting => return Ok(()),
                Phase::Stopped if in_flight == 0 => *phase = Phase::Starting,
                Phase::Stopped | Phase::Stopping => {
                    return Err(Error::Busy { context: self.context, in_flight });
                }
            }
        }
        let started = self.claim_and_subscribe();
        *self.phase.lock() = started.as_ref().map_or(Phase::Stopped, |id| Phase::Active(*id));
        started.map(drop)
    }

    /// Stops counting: waits until every dispatch in flight retired and its counters were delivered. Stopped already
    /// is fine; called while another thread stops, it returns at once.
    ///
    /// From inside a dispatch callback it cannot wait for dispatches of the batch at hand: it then ends with
    /// [`Error::Interception`], and their counters are delivered later.
    ///
    /// # Errors
    /// [`Error::Interception`] if dispatches did not retire within `timeout`; they are delivered when they do. The
    /// service is stopped all the same.
    pub fn stop(&self, timeout: Duration) -> Result<(), Error> {
        let id = {
            let mut phase = self.phase.lock();
            let Phase::Active(id) = *phase else { return Ok(()) };
            *phase = Phase::Stopping;
            id
        };
        let interception = &self.shared.interception;
        let stopped = interception.quiesce(id).and_then(|()| {
            // The hold is given back only after the drain: until then kernels must not overlap.
            let drained = interception.drain(id, timeout);
            interception.unsubscribe(id).and(drained)
        });
        let flushed = self.flush(timeout);
        self.release_claims();
        *self.phase.lock() = Phase::Stopped;
        stopped?;
        flushed
    }

    /// Waits until the counters of everything that retired so far were delivered.
    ///
    /// # Errors
    /// [`Error::Actor`] if the actor does not answer within `timeout`, or is gone.
    pub fn flush(&self, timeout: Duration) -> Result<(), Error> {
        Ok(self.actor.address().ask(Message::Flush).wait_timeout(timeout)?)
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

    fn claim_and_subscribe(&self) -> Result<SubscriptionId, Error> {
        let wanted: Vec<_> = self.agents.iter().map(|&agent| (agent, Claim::DispatchCounting)).collect();
        self.claims.claim(self.context, &wanted)?;
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Subscriber>::clone(&self.subscriber);
        let subscription = Subscription {
            context: self.context,
            service: Service::DispatchCounting,
            agents: self.agents.clone(),
            serialize: true,
            subscriber,
        };
        let id = self.shared.interception.subscribe(subscription).inspect_err(|_| self.release_claims())?;
        self.shared.subscribed(id);
        Ok(id)
    }

    fn release_claims(&self) {
        for &agent in &self.agents {
            self.claims.release(self.context, agent, Claim::DispatchCounting);
        }
    }
}

impl std::fmt::Debug for DispatchCounting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DispatchCounting").field("context", &self.context).finish_non_exhaustive()
    }
}
