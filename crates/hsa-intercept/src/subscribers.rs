//! Who is asked about the dispatches of an agent.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wavescope_core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wavescope_core::sync::{Condvar, Deadline, Mutex};
use wavescope_core::{
    AgentId, Answer, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, ProgramSink, Service,
    Subscription, SubscriptionId, Token,
};

use crate::kernel_trace::{KernelTracer, Tracing};
use crate::queue::Queue;
use crate::serializer::RunId;

/// A subscription and what is in flight for it.
pub(crate) struct Subscriber {
    pub(crate) id: SubscriptionId,
    pub(crate) context: ContextId,
    agents: Vec<AgentId>,
    role: Role,
    /// Dispatches that it instrumented or traces and that have not been published as retired.
    in_flight: AtomicUsize,
    /// Grants that it has to return, oldest first.
    grants: Mutex<VecDeque<(Token, Arc<Queue>, RunId)>>,
    /// Notified when `in_flight` falls to 0.
    drained: (Mutex<()>, Condvar),
    /// No hook is inside a callback of it, and none will be.
    silent: AtomicBool,
    /// A callback of it panicked; said once.
    panicked: AtomicBool,
}

/// What it does.
enum Role {
    Service { subscriber: Arc<dyn DispatchSubscriber>, service: Service, serialize: bool },
    Tracer(Arc<dyn KernelTracer>),
}

impl Subscriber {
    pub(crate) fn of_service(id: SubscriptionId, subscription: Subscription) -> Self {
        let Subscription { context, service, agents, serialize, subscriber } = subscription;
        Self::new(id, context, agents, Role::Service { subscriber, service, serialize })
    }

    pub(crate) fn of_tracer(id: SubscriptionId, tracing: Tracing) -> Self {
        Self::new(id, tracing.context, tracing.agents, Role::Tracer(tracing.tracer))
    }

    fn new(id: SubscriptionId, context: ContextId, agents: Vec<AgentId>, role: Role) -> Self {
        Self {
            id,
            context,
            agents,
            role,
            in_flight: AtomicUsize::new(0),
            grants: Mutex::new(VecDeque::new()),
            drained: (Mutex::new(()), Condvar::new()),
            silent: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
        }
    }

    /// Whether it measures `agent`.
    pub(crate) fn covers(&self, agent: AgentId) -> bool {
        self.agents.is_empty() || self.agents.contains(&agent)
    }

    /// The service that it is; `None` for a tracer.
    pub(crate) fn service(&self) -> Option<Service> {
        match self.role {
            Role::Service { service, .. } => Some(service),
            Role::Tracer(_) => None,
        }
    }

    /// Whether kernels of its agents must not overlap.
    pub(crate) fn serializes(&self) -> bool {
        matches!(self.role, Role::Service { serialize: true, .. })
    }

    /// Asks it about a dispatch. One that panics has nothing to do with it.
    pub(crate) fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let Role::Service { subscriber, .. } = &self.role else { return Answer::Ignore };
        self.guard(|| subscriber.enqueue(dispatch, sink)).unwrap_or(Answer::Decline)
    }

    pub(crate) fn publish(&self, event: DispatchEvent) {
        if let Role::Service { subscriber, .. } = &self.role {
            self.guard(|| subscriber.publish(event));
        }
    }

    pub(crate) fn trace(&self, tell: impl FnOnce(&dyn KernelTracer)) {
        if let Role::Tracer(tracer) = &self.role {
            self.guard(|| tell(&**tracer));
        }
    }

    /// Keeps a panic of client code from taking a hook or the reaper with it.
    fn guard<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        if cfg!(loom) {
            // A model's assertions must fail it.
            return Some(call());
        }
        let result = catch_unwind(AssertUnwindSafe(call));
        if result.is_err() && !self.panicked.swap(true, Ordering::Relaxed) {
            tracing::error!(context = %self.context, subscription = %self.id, "a callback panicked");
        }
        result.ok()
    }

    pub(crate) fn set_silent(&self) {
        self.silent.store(true, Ordering::Release);
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Acquire)
    }

    /// One more dispatch is about to be handed to a queue.
    pub(crate) fn took_off(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A dispatch was published as retired.
    pub(crate) fn landed(&self) {
        if self.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Behind the lock: a waiter has either seen the 0 or is waiting.
            drop(self.drained.0.lock());
            self.drained.1.notify_all();
        }
    }

    /// Whether dispatches of it are in flight, or grants that it must return.
    pub(crate) fn owes(&self) -> bool {
        self.in_flight() > 0 || !self.grants.lock().is_empty()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Waits until nothing is in flight; `false` if that was not so at the `deadline`.
    pub(crate) fn wait_drained(&self, deadline: Deadline) -> bool {
        let mut guard = self.drained.0.lock();
        while self.in_flight() > 0 {
            let (next, timed_out) = self.drained.1.wait_timeout(guard, deadline.left());
            guard = next;
            if timed_out {
                return self.in_flight() == 0;
            }
        }
        true
    }

    /// Remembers which run `token` holds until it is returned.
    pub(crate) fn owe_grant(&self, token: Token, queue: &Arc<Queue>, run: RunId) {
        self.grants.lock().push_back((token, Arc::clone(queue), run));
    }

    /// The run that `token` holds; the next call for it finds nothing.
    pub(crate) fn take_grant(&self, token: Token) -> Option<(Arc<Queue>, RunId)> {
        let mut grants = self.grants.lock();
        let index = grants.iter().position(|(owed, ..)| *owed == token)?;
        grants.remove(index).map(|(_, queue, run)| (queue, run))
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The subscribers of one agent, as its queues' hooks see them.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// In service order, at most one per service: claims exclude more.
    pub(crate) asked: Vec<Arc<Subscriber>>,
    /// Who traces every kernel.
    pub(crate) tracers: Vec<Arc<Subscriber>>,
    /// Whether kernels of the agent must not overlap.
    pub(crate) serialize: bool,
    /// Which stretch of time with subscribers this is; in between, packets went through unseen.
    pub(crate) period: u64,
}

impl Snapshot {
    /// Whether packets go through as they are: it is only there because earlier kernels left times.
    pub(crate) fn is_quiet(&self) -> bool {
        self.asked.is_empty() && self.tracers.is_empty() && !self.serialize
    }

    /// Whether kernels need a time carrier.
    pub(crate) fn carries_times(&self) -> bool {
        !self.asked.is_empty() || !self.tracers.is_empty()
    }
}
