//! The handle to an agent's owner, and the leases that contexts hold on it.
//!
//! While contexts register and take leases the runtime's table, or a constructor, may be in progress, and locks
//! of the loader held: the state machine runs inline then, on the caller's thread. The owner's thread starts
//! with the first claim.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::actor::{Actor, ActorThread, Address, Reply, reply, spawn_with};
use wavescope_core::sync::{Mutex, Places};
use wavescope_core::{AgentId, ContextId};

use crate::owner::{Message, Owner, ShutdownReport, TraceClient};
use crate::{BufferId, Device, Error, LeaseTerms, Need, OwnerActor, SlotSizes};

/// Requests that may wait: clients start and stop contexts, so a few are plenty, and more just wait.
const REQUEST_PLACES: usize = 16;
/// What a trace may have waiting: begin, stop submitted, stop retired, slot copied.
const NOTICES_PER_TRACE: usize = 4;
/// The end of the submission in flight, and of one that was given up.
const SUBMISSION_NOTICES: usize = 2;

/// What bounds an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long the GPU may take before it counts as silent. Not a limit on kernels: time only counts while
    /// somebody waits for the end of a trace.
    pub patience: Duration,
    /// Traces that may be in flight on the agent, all queues together.
    pub traces: usize,
}

impl Default for Limits {
    /// A minute, and as many traces as a ring of 16,384 packets holds (a traced dispatch takes at least four).
    fn default() -> Self {
        Self { patience: Duration::from_secs(60), traces: 4096 }
    }
}

/// The owner of one agent's trace resources, shared by everybody who holds a lease.
///
/// Dropping the last handle shuts it down; [`shutdown`](Self::shutdown) does so in time to see the report.
pub struct AgentOwner {
    agent: AgentId,
    limits: Limits,
    driver: Mutex<Driver>,
}

enum Driver {
    Inline(Box<OwnerActor>),
    Threaded(ActorThread<Message>),
    Ended,
}

impl AgentOwner {
    /// An owner that has allocated nothing and has no thread.
    pub fn new(agent: AgentId, device: Box<dyn Device>, limits: Limits) -> Arc<Self> {
        let actor = OwnerActor::new(Owner::new(agent, limits.patience), device);
        Arc::new(Self { agent, limits, driver: Mutex::new(Driver::Inline(Box::new(actor))) })
    }

    /// The agent.
    pub fn agent(&self) -> AgentId {
        self.agent
    }

    /// What bounds it.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Says what `context` needs. All contexts do so before the first of them acquires.
    ///
    /// # Errors
    /// [`Error::GrowthRefused`] after that; [`Error::HandleChanged`]; [`Error::ShutDown`].
    pub fn register(&self, context: ContextId, agent_handle: u64, need: Need) -> Result<(), Error> {
        self.ask(|reply| Message::Register { context, agent_handle, need, reply })
    }

    /// Takes a lease. The first one creates the submission queue.
    ///
    /// # Errors
    /// [`Error::NotRegistered`], [`Error::HandleChanged`], [`Error::Device`], [`Error::ShutDown`].
    pub fn acquire(
        self: &Arc<Self>,
        context: ContextId,
        agent_handle: u64,
        client: Arc<dyn TraceClient>,
    ) -> Result<Lease, Error> {
        let terms = self.ask(|reply| Message::Acquire { context, agent_handle, client, reply })?;
        Ok(Lease { owner: Arc::clone(self), context, terms })
    }

    /// Where to send messages about traces; starts the owner's thread if it has none.
    ///
    /// # Errors
    /// [`Error::ShutDown`]; [`Error::Core`] without a thread.
    pub fn address(&self) -> Result<Address<Message>, Error> {
        let mut driver = self.driver.lock();
        match std::mem::replace(&mut *driver, Driver::Ended) {
            Driver::Threaded(thread) => {
                let address = thread.address().clone();
                *driver = Driver::Threaded(thread);
                Ok(address)
            }
            Driver::Inline(actor) => {
                let places = Places {
                    requests: REQUEST_PLACES,
                    notices: NOTICES_PER_TRACE * self.limits.traces + SUBMISSION_NOTICES,
                };
                let thread = spawn_with(places, |address| actor.with_address(address))?;
                let address = thread.address().clone();
                *driver = Driver::Threaded(thread);
                Ok(address)
            }
            Driver::Ended => Err(Error::ShutDown(self.agent)),
        }
    }

    /// Ends everything: admits nothing new, stops device traces, waits for what is in flight, releases the
    /// resources and joins the thread. Bounded by the patience: what the GPU may still write is then kept for good and
    /// named in the report. A second time nothing is left to do.
    ///
    /// A service that was dropped holds no lease, whatever became of its dispatches.
    ///
    /// # Errors
    /// [`Error::StillLeased`] by a service that lives: nothing was released; drop it and call it again.
    pub fn shutdown(&self) -> Result<ShutdownReport, Error> {
        match self.ask(|reply| Message::Shutdown { reply }) {
            Err(Error::ShutDown(_)) => Ok(ShutdownReport::default()),
            Err(error) => Err(error),
            Ok(report) => {
                // Joins, or drops, what has already ended.
                let ended = std::mem::replace(&mut *self.driver.lock(), Driver::Ended);
                drop(ended);
                Ok(report)
            }
        }
    }

    /// Sends a request, inline or to the thread, and waits for the answer.
    pub(crate) fn ask<T>(
        &self,
        message: impl FnOnce(Reply<Result<T, Error>>) -> Message,
    ) -> Result<T, Error> {
        let (reply, mut pending) = reply(OwnerActor::NAME);
        let message = message(reply);
        let mut driver = self.driver.lock();
        match &mut *driver {
            Driver::Ended => Err(Error::ShutDown(self.agent)),
            Driver::Threaded(thread) => {
                let address = thread.address().clone();
                drop(driver);
                // The thread may be waiting for the GPU on behalf of this request: no lock is held meanwhile.
                address.send(message)?;
                pending.wait()?
            }
            Driver::Inline(actor) => {
                // Inline nothing waits for a GPU, so the answer is there at once.
                let _ = actor.handle(message);
                pending
                    .try_take()
                    .unwrap_or(Err(wavescope_core::Error::ActorGone { actor: OwnerActor::NAME }))?
            }
        }
    }
}

impl Drop for AgentOwner {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown() {
            tracing::error!(agent = %self.agent, %error, "trace owner not shut down in order");
        }
    }
}

/// A context's share of an agent's trace resources. They stay at least as long as the lease.
pub struct Lease {
    owner: Arc<AgentOwner>,
    context: ContextId,
    terms: LeaseTerms,
}

impl Lease {
    /// The owner.
    pub fn owner(&self) -> &Arc<AgentOwner> {
        &self.owner
    }

    /// The context.
    pub fn context(&self) -> ContextId {
        self.context
    }

    /// The context's own need, smaller than the shared buffers if another context needs more.
    pub fn own(&self) -> Need {
        self.terms.own
    }

    /// The shared buffers.
    pub fn shared(&self) -> &SlotSizes {
        &self.terms.shared
    }

    /// The address of a shared buffer, the same for every context of the agent. The first request allocates it.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::NoSuchBuffer`], [`Error::Device`].
    pub fn resolve(&self, buffer: BufferId, bytes: u64) -> Result<u64, Error> {
        let context = self.context;
        self.owner.ask(|reply| Message::Resolve { context, buffer, bytes, reply })
    }

    /// Makes the context the one that traces the agent.
    ///
    /// # Errors
    /// [`Error::Busy`] at once while another context does; [`Error::AgentSilent`]; [`Error::ShutDown`].
    pub fn claim(&self) -> Result<(), Error> {
        let context = self.context;
        self.owner.address()?.ask(|reply| Message::Claim { context, reply }).wait()?
    }

    /// Gives the claim back when nothing of the context is in flight any more. Its hook was quiesced before.
    ///
    /// # Errors
    /// [`Error::DrainTimedOut`].
    pub fn unhook(&self) -> Result<(), Error> {
        let context = self.context;
        self.owner.ask(|reply| Message::Unhook { context, reply })
    }

    /// As [`unhook`](Self::unhook), and waits no longer than `timeout`, even where the owner's patience is longer.
    ///
    /// # Errors
    /// [`Error::Core`] when time ran out, else as there.
    pub fn unhook_within(&self, timeout: Duration) -> Result<(), Error> {
        let context = self.context;
        self.owner.address()?.ask_within(|reply| Message::Unhook { context, reply }, timeout)?
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let context = self.context;
        let mut driver = self.owner.driver.lock();
        match &mut *driver {
            Driver::Inline(actor) => {
                let _ = actor.handle(Message::LeaseDropped { context });
            }
            Driver::Threaded(thread) => {
                let address = thread.address().clone();
                drop(driver);
                // An owner that is gone needs no lease back.
                let _ = address.send(Message::LeaseDropped { context });
            }
            Driver::Ended => {}
        }
    }
}
