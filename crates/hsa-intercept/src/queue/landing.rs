//! What retired on a queue, and what never will: the reaper's side.

use std::sync::Arc;

use wavescope_core::{Company, DispatchEvent, DispatchId, DispatchTimes, LossReason, Outcome};

use super::Queue;
use crate::device::Signal;
use crate::fault::{self, Fault};
use crate::flight::{Entry, Flying, Loose};
use crate::kernel_trace::Traced;
use crate::transition::Transition;

/// What the reaper keeps from queue to queue, so that it allocates only until it is warm.
#[derive(Debug, Default)]
pub(crate) struct Landing {
    entries: Vec<Entry>,
    loose: Vec<Loose>,
    ends: Vec<Arc<Transition>>,
    carriers: Vec<Signal>,
    /// How much landed so far.
    pub(crate) count: u64,
}

impl Queue {
    /// Publishes what retired since the last call. Only the reaper calls this. Returns whether something is out that
    /// nothing announces.
    pub(crate) fn reap(self: &Arc<Self>, landing: &mut Landing) -> bool {
        let Some(signals) = self.signals() else { return false };
        // Asked first: what retired before the queue was closed is not lost.
        let closed = !self.is_open();
        let device = self.device();
        // Acquire: what the packets wrote is visible before anybody is told.
        let value = device.load(signals.counter);
        {
            let mut flight = self.flight.lock();
            flight.retire(value, &mut landing.entries);
            if flight.has_loose() {
                let launches = signals.launches.map_or(i64::MIN, |launches| device.load(launches));
                let retired = |loose: &Loose| loose.launched >= launches && device.load(loose.carrier) < 1;
                flight.retire_loose(retired, &mut landing.loose, &mut landing.ends);
            }
        }
        landing.count += (landing.entries.len() + landing.loose.len()) as u64;
        for entry in landing.entries.drain(..) {
            self.land(entry, &mut landing.carriers);
        }
        for loose in landing.loose.drain(..) {
            self.land_loose(loose, &mut landing.carriers);
        }
        landing.ends.drain(..).for_each(|transition| transition.end());
        if closed {
            self.lose_rest(landing);
        }
        if self.is_given_up() && device.load(signals.gate) != 0 {
            // Its packets still come to gates that nobody else will open.
            device.store(signals.gate, 0);
        }
        let mut flight = self.flight.lock();
        flight.landed(&mut landing.carriers);
        if flight.is_empty() {
            self.emptied.notify_all();
        }
        flight.has_loose() || self.is_given_up()
    }

    fn land(&self, entry: Entry, carriers: &mut Vec<Signal>) {
        let agent = &self.agent;
        match entry {
            Entry::Announcement(run) => agent.serialize(|machine| machine.announced(self.lane, run)),
            Entry::Mark(transition) => transition.end(),
            Entry::EndOfKernels(run) => agent.serialize(|machine| machine.retired(self.lane, run)),
            Entry::Dispatch(flying) => {
                let times = self.times(flying.forwarded, flying.dispatch, flying.carrier, flying.enqueued_ns);
                let mut overrun = false;
                if let Some(run) = flying.run {
                    agent.serialize(|machine| {
                        overrun = machine.is_accompanied(self.lane, run);
                        machine.retired(self.lane, run)
                    });
                }
                flying.ends.iter().for_each(|transition| transition.end());
                self.device().store(flying.carrier, 1);
                carriers.push(flying.carrier);
                self.publish(&flying, Outcome::Completed(times), overrun);
            }
        }
    }

    fn land_loose(&self, loose: Loose, carriers: &mut Vec<Signal>) {
        let times = self.times(loose.forwarded, loose.dispatch, loose.carrier, loose.enqueued_ns);
        self.device().store(loose.carrier, 1);
        carriers.push(loose.carrier);
        loose.traced.landed(Outcome::Completed(times));
    }

    /// The kernel's times, kept for the application as they are and clamped for ourselves.
    fn times(
        &self,
        forwarded: u64,
        dispatch: DispatchId,
        carrier: Signal,
        enqueued_ns: u64,
    ) -> DispatchTimes {
        let ask = || self.device().dispatch_times(self.agent.id, carrier);
        let times = match forwarded {
            0 => ask(),
            signal => self.agent.times.retired(signal, dispatch, ask),
        };
        let Some(times) = times else { return DispatchTimes::default() };
        let latest = self.device().now_ns().max(enqueued_ns);
        let clamp = |time: u64| time.clamp(enqueued_ns, latest);
        DispatchTimes { start_ns: clamp(times.start_ns), end_ns: clamp(times.end_ns) }
    }

    /// Closes what will never retire. Its carriers may still be written by a stopped queue: they are given up.
    fn lose_rest(&self, landing: &mut Landing) {
        {
            let mut flight = self.flight.lock();
            flight.abandon(&mut landing.entries);
            flight.retire_loose(|_| true, &mut landing.loose, &mut landing.ends);
        }
        let reason = if self.is_destroyed() { LossReason::QueueDestroyed } else { LossReason::QueueError };
        let outcome = Outcome::Lost(reason);
        for entry in landing.entries.drain(..) {
            match entry {
                Entry::Dispatch(flying) => self.lose(&flying, outcome),
                Entry::Mark(transition) => transition.end(),
                Entry::Announcement(_) | Entry::EndOfKernels(_) => {}
            }
        }
        for loose in landing.loose.drain(..) {
            self.lose_carrier(loose.forwarded, loose.dispatch, loose.carrier);
            loose.traced.landed(outcome);
        }
        landing.ends.drain(..).for_each(|transition| transition.end());
        self.agent.serialize(|machine| machine.forget_runs(self.lane));
    }

    fn lose(&self, flying: &Flying, outcome: Outcome) {
        flying.ends.iter().for_each(|transition| transition.end());
        self.lose_carrier(flying.forwarded, flying.dispatch, flying.carrier);
        for part in flying.uses.iter().flatten() {
            let _ = part.subscriber.take_grant(part.token);
        }
        self.publish(flying, outcome, false);
    }

    fn lose_carrier(&self, forwarded: u64, dispatch: DispatchId, carrier: Signal) {
        if forwarded != 0 {
            self.agent.times.retired(forwarded, dispatch, || None);
        }
        if self.is_destroyed() {
            self.device().destroy_signal(carrier);
        }
    }

    /// Tells everyone who instrumented or traces a dispatch how it ended.
    fn publish(&self, flying: &Flying, outcome: Outcome, overrun: bool) {
        let unseen = flying.unseen || self.agent.is_blind();
        let company = Company { unseen, overrun };
        for part in flying.uses.iter().flatten() {
            let event = DispatchEvent::Retired { token: part.token, outcome, company };
            let early = fault::is(Fault::LandedBeforePublished);
            if early {
                part.subscriber.landed();
            }
            part.subscriber.publish(event);
            if !early {
                part.subscriber.landed();
            }
        }
        let traced = flying.traced.then(|| self.flight.lock().take_traced()).flatten();
        if let Some(mut traced) = traced {
            if overrun {
                traced.overrun();
            }
            Traced::landed(&traced, outcome);
        }
    }
}
