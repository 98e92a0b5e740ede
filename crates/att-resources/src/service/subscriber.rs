//! The service on the submitting thread: asked before a dispatch is enqueued, told what became of it.

use std::sync::{Arc, OnceLock};

use wavescope_core::actor::Address;
use wavescope_core::{
    Answer, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, Grant, GrantReturns, LossReason, Outcome,
    ProgramSink, Token,
};

use super::dispatch::{Decide, Decision};
use super::lane::{Lane, parts};
use super::tally::Tally;
use super::worker::Job;
use crate::TraceId;
use crate::owner::{Message, TraceClient};

/// What interception asks.
pub(super) struct Subscriber {
    pub(super) context: ContextId,
    pub(super) lanes: Arc<Vec<Lane>>,
    pub(super) decide: Arc<Decide>,
    pub(super) serialize_all: bool,
    pub(super) tally: Arc<Tally>,
}

impl Subscriber {
    fn lane(&self, token: Token) -> Option<&Lane> {
        self.lanes.get(parts(token).0)
    }

    fn decline(&self) -> Answer {
        if self.serialize_all { Answer::Decline } else { Answer::Ignore }
    }
}

impl DispatchSubscriber for Subscriber {
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let Some(lane) = self.lanes.iter().find(|lane| lane.agent == dispatch.agent) else {
            return Answer::Ignore;
        };
        let Decision::StartAndStop { user_data } = (self.decide)(dispatch) else {
            self.tally.declined();
            return self.decline();
        };
        match lane.trace(self.context, dispatch, user_data, sink) {
            Some(token) => {
                self.tally.traced();
                Answer::Instrument { token, grant: Grant::UntilReturned }
            }
            None => {
                self.tally.skipped();
                self.decline()
            }
        }
    }

    fn publish(&self, event: DispatchEvent) {
        let (token, message) = match event {
            DispatchEvent::Dispatched { token, .. } => {
                let trace = TraceId { context: self.context, token };
                (token, Message::StopSubmitted { trace })
            }
            // The trace itself shows whatever ran beside the kernel.
            DispatchEvent::Retired { token, outcome, company: _ } => {
                let trace = TraceId { context: self.context, token };
                let outcome = match outcome {
                    Outcome::Completed(_) => Ok(()),
                    Outcome::Lost(reason) => Err(reason),
                };
                (token, Message::StopRetired { trace, outcome })
            }
        };
        if let Some(lane) = self.lane(token) {
            lane.tell(message);
        }
    }
}

/// What the owner tells about the context's traces. It holds no lease: the owner holds it.
pub(super) struct Face {
    pub(super) worker: Address<Job>,
    /// Only dispatches have grants to return.
    pub(super) grants: Option<Arc<GrantReturns>>,
    /// The owner itself, known before the first trace begins. An address keeps nothing alive.
    pub(super) owner: OnceLock<Address<Message>>,
}

impl Face {
    /// Nobody copies the slot of a trace that outlived its service: it is free, and the grant goes back.
    fn skip_copy(&self, trace: TraceId) {
        let Some(owner) = self.owner.get() else { return };
        if owner.notify(Message::SlotCopied { trace }).is_err() {
            tracing::error!(%trace, "no place in the trace owner's mailbox");
        }
    }
}

impl TraceClient for Face {
    fn ended(&self, trace: TraceId, outcome: Result<(), LossReason>) {
        match self.worker.notify(Job::Ended { trace, outcome }) {
            Ok(true) => return,
            Ok(false) => tracing::warn!(%trace, "its service is gone: the trace is lost"),
            Err(_) => tracing::error!(%trace, "no place in the copy worker's mailbox"),
        }
        // The owner itself goes on after a trace that was lost.
        if outcome.is_ok() {
            self.skip_copy(trace);
        }
    }

    fn release(&self, trace: TraceId) {
        if let Some(grants) = &self.grants {
            grants.give_back(trace.token);
        }
    }
}
