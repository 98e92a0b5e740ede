//! Records of kernels that nobody measures: when they were enqueued, when they ran.
//!
//! Tracing alone neither serializes nor orders: the packets stay as they are but for the completion signal, which becomes a
//! time carrier of ours. A kernel with a signal of the application gets a *forward* behind its batch, so that only the next
//! batch waits for it.

use std::sync::Arc;

use wavescope_core::{AgentId, ContextId, Dispatch, Outcome};

use crate::correlation::{self, CorrelationIds};
use crate::subscribers::Subscriber;

/// A kernel as its tracer hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedKernel {
    /// What was dispatched, where, by whom.
    pub dispatch: Dispatch,
    /// What caused it.
    pub correlation: CorrelationIds,
    /// When it was handed to the queue, nanoseconds in the clock of the kernel's times.
    pub enqueued_ns: u64,
    /// Whether kernels of other queues of its agent were kept from running beside it; at the end this is `false` for one
    /// that kept others waiting too long.
    pub serialized: bool,
    /// Whether queues that nobody sees may run kernels beside it
    /// ([`Interceptor::other_queues`](crate::Interceptor::other_queues)).
    pub blind: bool,
}

/// Takes records of kernels.
///
/// Both calls come for each kernel, in this order. They must not block: `enqueued` runs on the submitting thread inside the
/// write hook, `completed` on the thread that sees all dispatches retire.
pub trait KernelTracer: Send + Sync {
    /// The kernel is about to be visible to the GPU.
    fn enqueued(&self, kernel: &TracedKernel);

    /// It ran, or never will.
    fn completed(&self, kernel: &TracedKernel, outcome: Outcome);
}

/// What to trace.
#[derive(Clone)]
pub struct Tracing {
    /// The context, whose external correlation ids count.
    pub context: ContextId,
    /// The agents whose kernels are traced; empty means all.
    pub agents: Vec<AgentId>,
    /// Who takes the records.
    pub tracer: Arc<dyn KernelTracer>,
}

/// A traced kernel in flight.
#[derive(Debug)]
pub(crate) struct Traced {
    /// Without external id: that is each tracer's own.
    kernel: TracedKernel,
    first: TracedBy,
    /// Seldom any, so seldom an allocation.
    more: Vec<TracedBy>,
}

/// One tracer's part in a kernel.
#[derive(Clone, Debug)]
pub(crate) struct TracedBy {
    tracer: Arc<Subscriber>,
    external: u64,
}

impl TracedBy {
    /// With the external correlation id that counts on the current thread.
    pub(crate) fn new(tracer: &Arc<Subscriber>) -> Self {
        Self { tracer: Arc::clone(tracer), external: correlation::external(tracer.context) }
    }
}

impl Traced {
    /// `None` if nobody traces.
    pub(crate) fn new(kernel: TracedKernel, mut by: impl Iterator<Item = TracedBy>) -> Option<Self> {
        let first = by.next()?;
        Some(Self { kernel, first, more: by.collect() })
    }

    /// Whether `subscriber` traces it.
    pub(crate) fn is_of(&self, subscriber: &Subscriber) -> bool {
        self.by().any(|by| std::ptr::eq(&raw const *by.tracer, subscriber))
    }

    /// Its packets are about to be handed to the queue.
    pub(crate) fn taking_off(mut self, serialized: bool) -> Self {
        self.kernel.serialized = serialized;
        self.tell(|subscriber, kernel| {
            subscriber.took_off();
            subscriber.trace(|tracer| tracer.enqueued(kernel));
        });
        self
    }

    /// Serialization was given up while it ran.
    pub(crate) fn overrun(&mut self) {
        self.kernel.serialized = false;
    }

    pub(crate) fn landed(&self, outcome: Outcome) {
        self.tell(|subscriber, kernel| {
            subscriber.trace(|tracer| tracer.completed(kernel, outcome));
            subscriber.landed();
        });
    }

    fn by(&self) -> impl Iterator<Item = &TracedBy> {
        std::iter::once(&self.first).chain(&self.more)
    }

    fn tell(&self, tell: impl Fn(&Subscriber, &TracedKernel)) {
        for by in self.by() {
            let mut kernel = self.kernel;
            kernel.correlation.external = by.external;
            tell(&by.tracer, &kernel);
        }
    }
}
