//! How a context leaves, and how everything ends.

use wavescope_core::actor::Reply;
use wavescope_core::{ContextId, LossReason, QueueId};

use super::trace::Trace;
use super::{Answer, Done, Effect, Ending, Owner, Queue, ShutdownReport, Source, Violation, answer};
use crate::fault::{self, Fault};
use crate::{BufferId, Error, TraceId};

impl Owner {
    /// A queue carried a dispatch of a context: it has to drain before the context's hook may go.
    pub(super) fn note_queue(&mut self, context: ContextId, queue: QueueId) {
        if let Some(entry) = self.contexts.get_mut(&context)
            && !entry.queues.contains(&queue)
        {
            entry.queues.push(queue);
        }
    }

    pub(super) fn drained(&mut self, context: ContextId, queue: QueueId, effects: &mut Vec<Effect>) {
        let carries = |trace: &Trace| trace.source == Source::Dispatch { queue } && trace.is_on_gpu();
        let in_flight = self.traces.iter().filter(|trace| trace.id.context == context && carries(trace));
        match in_flight.count() {
            0 => {
                if let Some(entry) = self.contexts.get_mut(&context) {
                    entry.queues.retain(|&hooked| hooked != queue);
                }
            }
            in_flight => effects.push(Effect::Report(Violation::NotDrained { queue, context, in_flight })),
        }
    }

    pub(super) fn unhook(&mut self, context: ContextId, reply: Done, effects: &mut Vec<Effect>) {
        if !self.contexts.contains_key(&context) {
            let error = Error::NotRegistered { context, agent: self.agent };
            return answer(Some(reply), Err(error), effects);
        }
        self.unhooks.push((context, reply));
        self.stop_device_traces(|trace| trace.context == context, effects);
    }

    /// Answers unhooks of contexts that have nothing in flight any more.
    pub(super) fn settle_unhooks(&mut self, effects: &mut Vec<Effect>) {
        let forgets_drain = fault::is(Fault::UnhookBeforeDrained);
        let unhooks = std::mem::take(&mut self.unhooks).into_iter();
        let ready = |(context, _): &(ContextId, Done)| !self.is_busy(*context) || forgets_drain;
        let (ready, waiting) = unhooks.partition::<Vec<_>, _>(ready);
        self.unhooks = waiting;
        for (context, reply) in ready {
            self.claim.take_if(|holder| *holder == context);
            answer(Some(reply), Ok(()), effects);
        }
    }

    /// Whether traces of a context are in progress, or a queue that carried some has not drained.
    fn is_busy(&self, context: ContextId) -> bool {
        let has_queues = self.contexts.get(&context).is_some_and(|entry| !entry.queues.is_empty());
        has_queues || self.traces_of(context) > 0
    }

    pub(super) fn shutdown(
        &mut self,
        reply: Reply<Result<ShutdownReport, Error>>,
        effects: &mut Vec<Effect>,
    ) {
        match &mut self.ending {
            Ending::Open => {
                let cut_short = self.traces.iter().map(|trace| trace.id).collect();
                let report = ShutdownReport { cut_short, leaked: Vec::new() };
                self.ending = Ending::Closing { replies: vec![reply], report };
                self.stop_device_traces(|_| true, effects);
            }
            Ending::Closing { replies, .. } => replies.push(reply),
            Ending::Closed => {
                effects.push(Effect::Answer(Answer::Report(reply, Ok(ShutdownReport::default()))));
            }
        }
    }

    /// Releases everything once nothing is in progress and all leases are back.
    pub(super) fn settle_shutdown(&mut self, effects: &mut Vec<Effect>) {
        let Ending::Closing { replies, .. } = &mut self.ending else { return };
        let waits = !self.traces.is_empty() && !fault::is(Fault::FreeInFlight);
        if replies.is_empty() || waits {
            return;
        }
        let leased = self.contexts.iter().filter(|(_, entry)| entry.leases > 0);
        let contexts: Vec<ContextId> = leased.map(|(&context, _)| context).collect();
        if !contexts.is_empty() && !fault::is(Fault::FreeInFlight) {
            // Whoever holds a lease has packets that name the buffers. It may drop it and ask again.
            for reply in std::mem::take(replies) {
                let error = Error::StillLeased { agent: self.agent, contexts: contexts.clone() };
                effects.push(Effect::Answer(Answer::Report(reply, Err(error))));
            }
            return;
        }
        let Ending::Closing { replies, mut report } = std::mem::replace(&mut self.ending, Ending::Closed)
        else {
            return;
        };
        report.leaked = self.release_resources(self.silent.application_queue, effects);
        for reply in replies {
            effects.push(Effect::Answer(Answer::Report(reply, Ok(report.clone()))));
        }
        effects.push(Effect::Exit);
    }

    /// The queue goes first: after that its packets write nothing any more, so nothing of it need leak.
    fn release_resources(&mut self, leak_outputs: bool, effects: &mut Vec<Effect>) -> Vec<BufferId> {
        if std::mem::replace(&mut self.queue, Queue::Absent) == Queue::Present {
            effects.push(Effect::DestroyQueue);
        }
        let mut leaked = Vec::new();
        for (buffer, address) in self.slots.take() {
            if leak_outputs && matches!(buffer, BufferId::Output(_)) {
                leaked.push(buffer);
                effects.push(Effect::Leak { buffer, address });
            } else {
                effects.push(Effect::Free { buffer, address });
            }
        }
        leaked
    }

    /// What is left to do when the owner ends without a shutdown, because it panicked or was closed: memory
    /// that anybody may still use is kept.
    pub(crate) fn abandon(&mut self, is_trustworthy: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        let is_used = !self.traces.is_empty() || self.contexts.values().any(|entry| entry.leases > 0);
        let leak = is_used || self.silent.application_queue || !is_trustworthy;
        self.release_resources(leak, &mut effects);
        effects
    }

    pub(super) fn settle_timer(&mut self, progress: bool, effects: &mut Vec<Effect>) {
        let is_closing = matches!(&self.ending, Ending::Closing { replies, .. } if !replies.is_empty());
        let waits = is_closing || !self.unhooks.is_empty() || self.submissions.is_in_flight();
        if waits && (progress || !self.timer_runs) {
            effects.push(Effect::ArmTimer);
        } else if !waits && self.timer_runs {
            effects.push(Effect::DisarmTimer);
        }
        self.timer_runs = waits;
    }

    /// The GPU, or a worker, used up the time allowed.
    pub(super) fn expired(&mut self, effects: &mut Vec<Effect>) {
        self.timer_runs = false;
        if self.submissions.is_in_flight() {
            self.silent.own_queue = true;
            self.give_up_submissions(effects);
        }
        if !self.is_open() {
            self.abandon_traces(effects);
        }
        for (context, reply) in std::mem::take(&mut self.unhooks) {
            if self.is_busy(context) {
                let (agent, in_flight, waited) = (self.agent, self.traces_of(context), self.patience);
                answer(Some(reply), Err(Error::DrainTimedOut { context, agent, in_flight, waited }), effects);
            } else {
                self.unhooks.push((context, reply)); // answered as usual
            }
        }
    }

    /// Gives up every trace; the slot is kept where the GPU, or a worker, may still use it.
    fn abandon_traces(&mut self, effects: &mut Vec<Effect>) {
        for trace in self.traces.iter().map(|trace| trace.id).collect::<Vec<_>>() {
            let is_device = self.traces.iter().any(|entry| entry.id == trace && entry.is_device());
            self.silent.own_queue |= is_device;
            self.silent.application_queue |= !is_device || self.is_copying(trace);
            self.lose(trace, LossReason::TimedOut, None, effects);
        }
    }

    fn is_copying(&self, trace: TraceId) -> bool {
        self.traces.iter().any(|entry| entry.id == trace && !entry.is_on_gpu())
    }

    fn stop_device_traces(&mut self, wanted: impl Fn(TraceId) -> bool, effects: &mut Vec<Effect>) {
        let device = self.traces.iter().filter(|trace| trace.is_device() && wanted(trace.id));
        for trace in device.map(|trace| trace.id).collect::<Vec<_>>() {
            self.stop_device_trace(trace, effects);
        }
    }
}
