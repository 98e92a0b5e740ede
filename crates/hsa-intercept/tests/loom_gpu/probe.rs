//! A service that knows when it must hear nothing more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wavescope_core::sync::atomic::AtomicBool;
use wavescope_core::{
    Answer, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, Grant, ProgramSink, Service,
    Subscription, Token,
};

pub(crate) struct Probe {
    answer: fn(&Dispatch) -> Answer,
    pub(crate) silent: AtomicBool,
    pub(crate) drained: AtomicBool,
    pub(crate) retired: AtomicUsize,
}

/// Every kernel is counted.
pub(crate) fn count(dispatch: &Dispatch) -> Answer {
    let token = Token { index: dispatch.id.0 as u32, generation: 0 };
    Answer::Instrument { token, grant: Grant::UntilRetired }
}

impl Probe {
    pub(crate) fn new(answer: fn(&Dispatch) -> Answer) -> Arc<Self> {
        let (silent, drained) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { answer, silent, drained, retired: AtomicUsize::new(0) })
    }

    pub(crate) fn subscription(self: &Arc<Self>, serialize: bool) -> Subscription {
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Self>::clone(self);
        let (context, service) = (ContextId(1), Service::DispatchCounting);
        Subscription { context, service, agents: Vec::new(), serialize, subscriber }
    }
}

impl DispatchSubscriber for Probe {
    fn enqueue(&self, dispatch: &Dispatch, _sink: &mut ProgramSink<'_>) -> Answer {
        assert!(!self.silent.load(Ordering::Acquire), "asked after quiesce returned");
        (self.answer)(dispatch)
    }

    fn publish(&self, event: DispatchEvent) {
        if let DispatchEvent::Retired { .. } = event {
            assert!(!self.drained.load(Ordering::Acquire), "published after the drain");
            self.retired.fetch_add(1, Ordering::Relaxed);
        }
    }
}
