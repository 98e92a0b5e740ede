//! The one submission queue: one batch at a time.

use std::collections::VecDeque;

use wavescope_core::{AqlPacket, LossReason};

use super::trace::Stage;
use super::{Done, Effect, Owner, SubmissionId, answer, is};
use crate::{DeviceError, Error, TraceId};

/// Batches in flight and waiting.
#[derive(Default)]
pub(super) struct Submissions {
    next: u64,
    in_flight: Option<(SubmissionId, Purpose)>,
    waiting: VecDeque<(Purpose, Vec<AqlPacket>)>,
}

/// What a batch is for.
pub(super) enum Purpose {
    Start(TraceId),
    Stop(TraceId),
    Insert(Done),
}

impl Submissions {
    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Enqueues the next batch if the one before has retired.
    fn advance(&mut self, effects: &mut Vec<Effect>) {
        if self.in_flight.is_some() {
            return;
        }
        if let Some((purpose, packets)) = self.waiting.pop_front() {
            let submission = SubmissionId(self.next);
            self.next += 1;
            self.in_flight = Some((submission, purpose));
            effects.push(Effect::Submit { submission, packets });
        }
    }
}

impl Owner {
    pub(super) fn submit(&mut self, purpose: Purpose, packets: Vec<AqlPacket>, effects: &mut Vec<Effect>) {
        self.submissions.waiting.push_back((purpose, packets));
        self.submissions.advance(effects);
    }

    /// The queue takes no more: every batch that waits or is in flight is given up, with its trace.
    pub(super) fn give_up_submissions(&mut self, effects: &mut Vec<Effect>) {
        let in_flight = self.submissions.in_flight.take().map(|(_, purpose)| purpose);
        let waiting = std::mem::take(&mut self.submissions.waiting);
        for purpose in in_flight.into_iter().chain(waiting.into_iter().map(|(purpose, _)| purpose)) {
            match purpose {
                Purpose::Start(trace) | Purpose::Stop(trace) => {
                    self.lose(trace, LossReason::TimedOut, None, effects);
                }
                Purpose::Insert(reply) => answer(Some(reply), Err(self.silence()), effects),
            }
        }
    }

    /// The runtime did not take the batch: nothing of it reached the GPU.
    pub(super) fn submission_refused(
        &mut self,
        submission: SubmissionId,
        source: DeviceError,
        effects: &mut Vec<Effect>,
    ) {
        let Some(purpose) = self.ended_purpose(submission) else { return };
        let error = Error::Device { agent: self.agent, source };
        match purpose {
            Purpose::Start(trace) => {
                self.lose(trace, LossReason::QueueError, Some(error), effects);
                self.give_claim_back(trace, effects);
            }
            // The trace runs on, and nothing can stop it.
            Purpose::Stop(trace) => {
                self.silent.own_queue = true;
                self.lose(trace, LossReason::QueueError, Some(error), effects);
            }
            Purpose::Insert(reply) => answer(Some(reply), Err(error), effects),
        }
        self.submissions.advance(effects);
    }

    pub(super) fn submission_ended(
        &mut self,
        submission: SubmissionId,
        result: Result<(), DeviceError>,
        effects: &mut Vec<Effect>,
    ) {
        // One that was given up may still end, much later.
        let Some(purpose) = self.ended_purpose(submission) else { return };
        match (purpose, result) {
            (Purpose::Start(trace), Ok(())) => self.started(trace, effects),
            (Purpose::Stop(trace), Ok(())) => self.readable(trace, effects),
            (Purpose::Insert(reply), Ok(())) => answer(Some(reply), Ok(()), effects),
            (purpose, Err(source)) => {
                self.silent.own_queue = true;
                let error = Error::Device { agent: self.agent, source };
                match purpose {
                    Purpose::Start(trace) | Purpose::Stop(trace) => {
                        self.lose(trace, LossReason::QueueError, Some(error), effects);
                    }
                    Purpose::Insert(reply) => answer(Some(reply), Err(error), effects),
                }
                self.give_up_submissions(effects);
            }
        }
        self.submissions.advance(effects);
    }

    fn ended_purpose(&mut self, submission: SubmissionId) -> Option<Purpose> {
        self.submissions.in_flight.take_if(|(id, _)| *id == submission).map(|(_, purpose)| purpose)
    }

    fn started(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.traces.iter_mut().find(|entry| is(trace)(entry)) else { return };
        entry.stage = Stage::Running;
        let (reply, is_to_stop) = (entry.begin_reply.take(), entry.is_to_stop);
        answer(reply, Ok(()), effects);
        if is_to_stop {
            self.submit_stop(trace, effects);
        }
    }

    /// A start that failed gives the claim back, unless the context has other traces.
    fn give_claim_back(&mut self, trace: TraceId, _effects: &mut Vec<Effect>) {
        if self.claim == Some(trace.context) && self.traces_of(trace.context) == 0 {
            self.claim = None;
        }
    }
}
