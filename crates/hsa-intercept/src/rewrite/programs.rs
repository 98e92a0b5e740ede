//! Kernels that somebody measures.

use std::sync::Arc;

use wavescope_core::{Answer, AqlPacket, Dispatch, DispatchEvent, Grant, ProgramSink};

use super::{Rewriter, retire_with};
use crate::device::Signal;
use crate::flight::{Entry, Flying, Use};
use crate::kernel_trace::Traced;
use crate::packets::barrier;
use crate::serializer::RunId;

/// What the subscribers want with one kernel.
#[derive(Default)]
pub(super) struct Answers {
    uses: [Option<Use>; 2],
    /// Someone measures it.
    pub(super) instrument: bool,
    /// Someone wants it serialized.
    pub(super) serialize: bool,
}

impl Answers {
    /// How many grants must be returned.
    pub(super) fn returns(&self) -> usize {
        self.uses.iter().flatten().filter(|part| part.grant == Grant::UntilReturned).count()
    }
}

impl Rewriter<'_> {
    pub(super) fn ask(&mut self, dispatch: &Dispatch) -> Answers {
        // Where nobody is asked any more, a hold may still be there.
        let mut answers = Answers { serialize: self.snapshot.asked.is_empty(), ..Answers::default() };
        let mut free = 0;
        for subscriber in &self.snapshot.asked {
            let Some(after) = self.scratch.after.get_mut(free) else { break };
            let (before_length, before) = (self.scratch.before.len(), &mut self.scratch.before);
            match subscriber.enqueue(dispatch, &mut ProgramSink::new(before, after)) {
                Answer::Instrument { token, grant } => {
                    answers.uses[free] = Some(Use { subscriber: Arc::clone(subscriber), token, grant });
                    (answers.instrument, answers.serialize) = (true, true);
                    free += 1;
                }
                answer @ (Answer::Decline | Answer::Ignore) => {
                    before.truncate(before_length);
                    after.clear();
                    answers.serialize |= answer == Answer::Decline;
                }
            }
        }
        answers
    }

    pub(super) fn instrumented(
        &mut self,
        packet: &AqlPacket,
        dispatch: &Dispatch,
        answers: Answers,
        carrier: Signal,
        run: Option<RunId>,
        traced: Option<Traced>,
    ) {
        // Forwards do not wait for what is measured.
        self.forward();
        let by_barrier = self.retires_by_barrier();
        let scratch = &mut *self.scratch;
        if let (Some(first), false) = (scratch.before.first_mut(), scratch.ordered) {
            first.set_header(first.header().with_barrier());
        }
        let mut kernel = *packet;
        kernel.set_completion_signal(carrier.0);
        if run.is_some() || !scratch.before.is_empty() {
            kernel.set_header(kernel.header().with_barrier());
        }
        scratch.out.append(&mut scratch.before);
        scratch.out.push(kernel);
        if packet.completion_signal() != 0 {
            scratch.out.push(barrier(0, packet.completion_signal()));
        }
        let has_after = scratch.after.iter().any(|packets| !packets.is_empty());
        let [outer, inner] = &mut scratch.after;
        scratch.out.append(inner);
        scratch.out.append(outer);
        retire_with(&mut scratch.out, has_after && !by_barrier, self.signals.counter);
        scratch.ordered = true;
        // The run's declined kernels in front of it retire with it.
        self.tail = None;
        let is_traced = traced.is_some();
        scratch.traced.extend(traced);
        self.fly(packet, dispatch, answers, carrier, run, is_traced);
    }

    /// Lists an instrumented dispatch as in flight and tells who instrumented it.
    fn fly(
        &mut self,
        packet: &AqlPacket,
        dispatch: &Dispatch,
        answers: Answers,
        carrier: Signal,
        run: Option<RunId>,
        traced: bool,
    ) {
        let enqueued_ns = self.now_ns();
        let forwarded = packet.completion_signal();
        if forwarded != 0 {
            self.queue.agent.times.forward(forwarded, dispatch.id, carrier);
        }
        for part in answers.uses.iter().flatten() {
            if let (Grant::UntilReturned, Some(run)) = (part.grant, run) {
                part.subscriber.owe_grant(part.token, self.queue, run);
            }
            part.subscriber.took_off();
            part.subscriber.publish(DispatchEvent::Dispatched { token: part.token, dispatch: *dispatch });
        }
        self.list(Entry::Dispatch(Flying {
            carrier,
            dispatch: dispatch.id,
            forwarded,
            enqueued_ns,
            run,
            ends: Vec::new(),
            uses: answers.uses,
            traced,
            unseen: self.queue.agent.is_blind(),
        }));
    }
}
