//! A trace from its begin to the copy of its data.

use wavescope_core::{AqlPacket, LossReason};

use super::submission::Purpose;
use super::{Done, Effect, Owner, QUEUE_PACKETS, Source, Violation, answer, is};
use crate::fault::{self, Fault};
use crate::{Error, TraceId};

/// A trace in progress.
pub(super) struct Trace {
    pub(super) id: TraceId,
    pub(super) source: Source,
    pub(super) stage: Stage,
    /// A stop was asked for before the start had retired.
    pub(super) is_to_stop: bool,
    pub(super) begin_reply: Option<Done>,
    pub(super) stop_replies: Vec<Done>,
}

/// How far a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A device trace before its start: the slot belongs to another one.
    Waiting,
    /// Its start packets are in the owner's queue.
    Starting,
    /// It runs, or waits on the GPU in the application's queue.
    Running,
    /// Its stop packet is in a queue.
    Stopping,
    /// Its data lie in the slot and are being copied.
    Copying,
}

impl Trace {
    fn new(id: TraceId, source: Source, stage: Stage, begin_reply: Option<Done>) -> Self {
        Self { id, source, stage, is_to_stop: false, begin_reply, stop_replies: Vec::new() }
    }

    pub(super) fn is_device(&self) -> bool {
        matches!(self.source, Source::Device { .. })
    }

    /// Whether the GPU has not confirmed that it is done with it.
    pub(super) fn is_on_gpu(&self) -> bool {
        matches!(self.stage, Stage::Starting | Stage::Running | Stage::Stopping)
    }
}

impl Owner {
    pub(super) fn begin(
        &mut self,
        trace: TraceId,
        source: Source,
        reply: Option<Done>,
        effects: &mut Vec<Effect>,
    ) {
        if let Err(error) = self.check_begin(trace, &source) {
            if reply.is_some() || matches!(source, Source::Device { .. }) {
                answer(reply, Err(error), effects);
                return;
            }
            // Its packets are on their way whatever the owner thinks of them, and will write the slot.
            if self.is_open() && !self.is_silent() {
                effects.push(Effect::Report(Violation::Unclaimed(trace)));
            }
        }
        match source {
            Source::Dispatch { queue } => {
                self.note_queue(trace.context, queue);
                self.traces.push(Trace::new(trace, source, Stage::Running, None));
                answer(reply, Ok(()), effects);
            }
            Source::Device { .. } => {
                self.traces.push(Trace::new(trace, source, Stage::Waiting, reply));
                self.start_next(effects);
            }
        }
    }

    fn check_begin(&self, trace: TraceId, source: &Source) -> Result<(), Error> {
        self.check_open()?;
        let agent = self.agent;
        if self.is_silent() {
            return Err(self.silence());
        }
        match self.claim {
            Some(holder) if holder == trace.context => {}
            Some(holder) => return Err(Error::Busy { agent, holder, contender: trace.context }),
            None => return Err(Error::NotClaimed { context: trace.context, agent }),
        }
        let packets = match source {
            Source::Dispatch { .. } => 0,
            Source::Device { start, stop } => start.len().max(stop.len()),
        };
        self.check_batch(packets)
    }

    fn check_batch(&self, packets: usize) -> Result<(), Error> {
        if packets <= QUEUE_PACKETS {
            Ok(())
        } else {
            Err(Error::BatchTooLarge { agent: self.agent, packets, size: QUEUE_PACKETS })
        }
    }

    /// Starts the device trace that waits longest, if nothing uses the slot.
    fn start_next(&mut self, effects: &mut Vec<Effect>) {
        if self.traces.iter().any(|trace| trace.stage != Stage::Waiting) {
            return;
        }
        let Some(first) = self.traces.first_mut() else { return };
        first.stage = Stage::Starting;
        let id = first.id;
        if let Source::Device { start, .. } = &mut first.source {
            let packets = std::mem::take(start);
            self.submit(Purpose::Start(id), packets, effects);
        }
    }

    pub(super) fn insert(
        &mut self,
        trace: TraceId,
        packets: Vec<AqlPacket>,
        reply: Done,
        effects: &mut Vec<Effect>,
    ) {
        // Behind the start in the same queue, so it need not have retired.
        let takes = |entry: &Trace| matches!(entry.stage, Stage::Starting | Stage::Running);
        let runs = self.traces.iter().any(|entry| is(trace)(entry) && entry.is_device() && takes(entry));
        let result = match self.check_batch(packets.len()) {
            Ok(()) if !runs => Err(Error::UnknownTrace { agent: self.agent, trace }),
            result => result,
        };
        match result {
            Ok(()) => self.submit(Purpose::Insert(reply), packets, effects),
            Err(error) => answer(Some(reply), Err(error), effects),
        }
    }

    pub(super) fn stop(&mut self, trace: TraceId, reply: Done, effects: &mut Vec<Effect>) {
        let found = self.traces.iter_mut().find(|entry| is(trace)(entry) && entry.is_device());
        match found {
            Some(entry) => {
                entry.stop_replies.push(reply);
                self.stop_device_trace(trace, effects);
            }
            None => answer(Some(reply), Err(Error::UnknownTrace { agent: self.agent, trace }), effects),
        }
    }

    /// Brings a device trace to its end from wherever it is.
    pub(super) fn stop_device_trace(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.traces.iter_mut().find(|entry| is(trace)(entry)) else { return };
        match entry.stage {
            Stage::Waiting => self.cancel(trace, effects),
            Stage::Starting => entry.is_to_stop = true,
            Stage::Running => self.submit_stop(trace, effects),
            Stage::Stopping | Stage::Copying => {}
        }
    }

    /// Removes a trace that has not started: there is nothing to stop and nothing to read.
    fn cancel(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        if let Some(entry) = self.remove(trace) {
            answer(entry.begin_reply, Err(Error::Cancelled { agent: self.agent, trace }), effects);
            entry.stop_replies.into_iter().for_each(|reply| answer(Some(reply), Ok(()), effects));
        }
    }

    pub(super) fn submit_stop(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.traces.iter_mut().find(|entry| is(trace)(entry)) else { return };
        entry.stage = Stage::Stopping;
        if let Source::Device { stop, .. } = &mut entry.source {
            let packets = std::mem::take(stop);
            self.submit(Purpose::Stop(trace), packets, effects);
        }
    }

    pub(super) fn stop_submitted(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        // It has just begun, so it is among the last.
        let mut newest = self.traces.iter_mut().rev();
        match newest.find(|entry| is(trace)(entry) && entry.stage == Stage::Running) {
            Some(entry) => {
                entry.stage = Stage::Stopping;
                if fault::is(Fault::CopyBeforeRetired) {
                    self.readable(trace, effects);
                }
            }
            None => unexpected("StopSubmitted", trace, effects),
        }
    }

    pub(super) fn stop_retired(
        &mut self,
        trace: TraceId,
        outcome: Result<(), LossReason>,
        effects: &mut Vec<Effect>,
    ) {
        let found =
            self.traces.iter().any(|entry| is(trace)(entry) && !entry.is_device() && entry.is_on_gpu());
        let slot_is_full = self.in_slot.is_some();
        match outcome {
            _ if !found => {
                if !fault::is(Fault::CopyBeforeRetired) {
                    unexpected("StopRetired", trace, effects);
                }
            }
            Ok(()) if slot_is_full && !fault::is(Fault::ReleaseBeforeCopied) => {
                effects.push(Effect::Report(Violation::Overrun(trace)));
                self.lose(trace, LossReason::Overwritten, None, effects);
            }
            Ok(()) => {
                self.readable(trace, effects);
                if let (true, Some(client)) =
                    (fault::is(Fault::ReleaseBeforeCopied), self.client(trace.context))
                {
                    effects.push(Effect::Release { client, trace });
                }
            }
            Err(reason) => {
                self.silent.application_queue |= reason.gpu_may_still_write();
                self.lose(trace, reason, None, effects);
            }
        }
    }

    /// The stop packet retired: the data lie in the slot.
    pub(super) fn readable(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        let Some(entry) = self.traces.iter_mut().find(|entry| is(trace)(entry)) else { return };
        entry.stage = Stage::Copying;
        self.in_slot = Some(trace);
        if let Some(client) = self.client(trace.context) {
            effects.push(Effect::Ended { client, trace, outcome: Ok(()) });
        }
    }

    pub(super) fn slot_copied(&mut self, trace: TraceId, effects: &mut Vec<Effect>) {
        if !self.traces.iter().any(|entry| is(trace)(entry) && entry.stage == Stage::Copying) {
            unexpected("SlotCopied", trace, effects);
            return;
        }
        self.release(trace, effects);
        if let Some(entry) = self.remove(trace) {
            entry.stop_replies.into_iter().for_each(|reply| answer(Some(reply), Ok(()), effects));
        }
        self.give_back_early_leases(trace.context);
        self.start_next(effects);
    }

    /// Ends a trace whose data cannot be read.
    pub(super) fn lose(
        &mut self,
        trace: TraceId,
        reason: LossReason,
        error: Option<Error>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(stage) = self.traces.iter().find(|entry| is(trace)(entry)).map(|entry| entry.stage) else {
            return;
        };
        // Of a trace that never started its begin tells, and there is nothing to deliver.
        if let (true, Some(client)) = (stage != Stage::Starting, self.client(trace.context)) {
            effects.push(Effect::Ended { client, trace, outcome: Err(reason) });
        }
        self.release(trace, effects);
        if let Some(entry) = self.remove(trace) {
            let error = error.unwrap_or_else(|| self.silence());
            let mut replies = entry.begin_reply.into_iter().chain(entry.stop_replies);
            answer(replies.next(), Err(error), effects);
            replies.for_each(|reply| answer(Some(reply), Err(self.silence()), effects));
        }
        self.give_back_early_leases(trace.context);
        if self.is_silent() {
            self.cancel_waiting(effects);
        } else {
            self.start_next(effects);
        }
    }

    /// Cancels every device trace that has not started.
    pub(super) fn cancel_waiting(&mut self, effects: &mut Vec<Effect>) {
        let waiting = self.traces.iter().filter(|trace| trace.stage == Stage::Waiting);
        for trace in waiting.map(|trace| trace.id).collect::<Vec<_>>() {
            self.cancel(trace, effects);
        }
    }

    /// Lets interception go on after a dispatch.
    fn release(&self, trace: TraceId, effects: &mut Vec<Effect>) {
        let is_dispatch = self.traces.iter().any(|entry| is(trace)(entry) && !entry.is_device());
        if is_dispatch
            && !fault::is(Fault::ReleaseBeforeCopied)
            && let Some(client) = self.client(trace.context)
        {
            effects.push(Effect::Release { client, trace });
        }
    }

    fn remove(&mut self, trace: TraceId) -> Option<Trace> {
        self.in_slot.take_if(|copied| *copied == trace);
        let index = self.traces.iter().position(is(trace))?;
        Some(self.traces.remove(index))
    }
}

fn unexpected(event: &'static str, trace: TraceId, effects: &mut Vec<Effect>) {
    effects.push(Effect::Report(Violation::Unexpected { event, trace }));
}
