//! An application's queue: what its write hook and the reaper share.
//!
//! Who touches what:
//!
//! * `word` and `scratch`: the hook, one at a time per queue (the runtime holds the queue's lock around it).
//! * `flight`: hook and reaper, locked for a few moves per batch.
//! * `signals`: made by the first hook that instruments, read by the reaper, destroyed by the reaper when the queue
//!   is gone. A queue that nobody measures costs no signal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use wavescope_core::sync::{Condvar, Mutex};
use wavescope_core::{AqlPacket, DispatchEvent, DispatchTimes, LossReason, Outcome, QueueId};

use crate::Error;
use crate::agent::AgentState;
use crate::device::{Device, Signal, SignalKind};
use crate::fault::{self, Fault};
use crate::flight::{COUNTER_START, Entry, Flight, Flying};
use crate::packets::barrier;
use crate::reaper::Reaper;
use crate::rewrite::Scratch;
use crate::serializer::{Lane, RunId};
use crate::snapshot::HookWord;
use crate::transition::Transition;

/// One queue.
pub(crate) struct Queue {
    pub(crate) id: QueueId,
    pub(crate) agent: Arc<AgentState>,
    pub(crate) lane: Lane,
    pub(crate) word: HookWord,
    pub(crate) scratch: Mutex<Scratch>,
    pub(crate) flight: Mutex<Flight>,
    /// Notified when `flight` became empty.
    emptied: Condvar,
    signals: Mutex<Option<QueueSignals>>,
    /// Why the queue takes no more instrumented work, as [`Closed`].
    closed: AtomicU32,
    released: AtomicBool,
    /// Process-wide number of the last dispatch.
    pub(crate) dispatches: Arc<AtomicU64>,
    pub(crate) reaper: Arc<Reaper>,
    /// Makes whoever feeds the queue call [`mark`](Queue::mark), where that is possible.
    nudge: Mutex<Option<Nudge>>,
    /// The mark that has yet to be written, and whether there is one.
    wanted: Mutex<Option<Arc<Transition>>>,
    mark_wanted: AtomicBool,
}

/// Reaches a queue from outside its hook. Returns whether it does.
pub(crate) type Nudge = Arc<dyn Fn() -> bool + Send + Sync>;

/// The signals of a queue that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSignals {
    /// Decremented by the last packet of everything of ours.
    pub(crate) counter: Signal,
    /// Wakes the reaper; shared by all queues.
    pub(crate) bell: Signal,
    /// 0 lets the queue's first waiting run pass.
    pub(crate) gate: Signal,
}

const OPEN: u32 = 0;
const FAILED: u32 = 1;
const DESTROYED: u32 = 2;

impl Queue {
    pub(crate) fn new(
        id: QueueId,
        agent: &Arc<AgentState>,
        dispatches: &Arc<AtomicU64>,
        reaper: &Arc<Reaper>,
    ) -> Arc<Self> {
        let queue = Arc::new(Self {
            id,
            agent: Arc::clone(agent),
            lane: agent.add_lane(),
            word: HookWord::default(),
            scratch: Mutex::new(Scratch::default()),
            flight: Mutex::new(Flight::new()),
            emptied: Condvar::new(),
            signals: Mutex::new(None),
            closed: AtomicU32::new(OPEN),
            released: AtomicBool::new(false),
            dispatches: Arc::clone(dispatches),
            reaper: Arc::clone(reaper),
            nudge: Mutex::new(None),
            wanted: Mutex::new(None),
            mark_wanted: AtomicBool::new(false),
        });
        agent.add_queue(&queue);
        queue
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.agent.device
    }

    /// The signals if the queue has been measured.
    pub(crate) fn signals(&self) -> Option<QueueSignals> {
        *self.signals.lock()
    }

    /// The signals, made now if the queue has not been measured before. `None` for a queue that takes no more work.
    ///
    /// Made under the lock: hook and mark may both be the first, and a queue that is destroyed meanwhile gets none.
    pub(crate) fn ensure_signals(self: &Arc<Self>) -> Option<QueueSignals> {
        let made = {
            let mut signals = self.signals.lock();
            if signals.is_some() || !self.is_open() {
                return *signals;
            }
            *signals = self.make_signals(self.reaper.bell()?).ok();
            (*signals)?
        };
        self.agent.set_gate(self.lane, made.gate);
        self.reaper.watch(self);
        Some(made)
    }

    fn make_signals(&self, bell: Signal) -> Result<QueueSignals, Error> {
        let device = self.device();
        let counter = device.create_signal(COUNTER_START, SignalKind::GpuOnly)?;
        let gate =
            device.create_signal(1, SignalKind::GpuOnly).inspect_err(|_| device.destroy_signal(counter))?;
        Ok(QueueSignals { counter, bell, gate })
    }

    pub(crate) fn set_nudge(&self, nudge: Nudge) {
        *self.nudge.lock() = Some(nudge);
    }

    /// Asks for a mark behind everything that goes through unseen; grants of the agent are held back until it retired. The
    /// next hook that sees the new subscribers writes it in front of its own packets, or else the nudge does.
    pub(crate) fn want_mark(self: &Arc<Self>, from: RunId) {
        let reachable = self.nudge.lock().is_some();
        if !reachable || self.ensure_signals().is_none() {
            return;
        }
        let mut wanted = self.wanted.lock();
        // One that is still to be written will stand behind all of it too.
        if wanted.is_none() {
            let transition = Transition::begin(&self.agent, from);
            self.reaper.hurry(Arc::clone(&transition));
            *wanted = Some(transition);
            self.mark_wanted.store(true, Ordering::Release);
        }
    }

    /// Holds back the agent's runs from `from` on until the last dispatch in flight that no run covers has retired.
    pub(crate) fn await_uncovered(&self, from: RunId) {
        let mut flight = self.flight.lock();
        let Some(last) = flight.last_uncovered() else { return };
        let transition = Transition::begin(&self.agent, from);
        self.reaper.hurry(Arc::clone(&transition));
        last.ends.push(transition);
    }

    /// Has the mark written though the application submits nothing.
    pub(crate) fn nudge(&self) {
        let nudge = self.nudge.lock().clone();
        let reached = nudge.is_some_and(|nudge| self.mark_wanted.load(Ordering::Acquire) && nudge());
        if !reached && let Some(transition) = self.take_wanted() {
            transition.end();
        }
    }

    /// The mark that has yet to be written.
    pub(crate) fn take_wanted(&self) -> Option<Arc<Transition>> {
        if !self.mark_wanted.load(Ordering::Acquire) {
            return None;
        }
        let mut wanted = self.wanted.lock();
        self.mark_wanted.store(false, Ordering::Relaxed);
        wanted.take()
    }

    /// Writes the mark that was asked for, if one was. Called by whoever feeds the queue.
    pub(crate) fn mark(&self, write: &mut dyn FnMut(&[AqlPacket])) {
        let Some(transition) = self.take_wanted() else { return };
        let Some(signals) = self.signals() else { return transition.end() };
        self.reaper.expect_rings(1);
        self.flight.lock().push_all(&mut vec![Entry::Mark(transition)]);
        write(&[barrier(0, signals.counter.0), barrier(0, signals.bell.0)]);
    }

    /// The runtime stopped the queue: nothing on it will complete.
    pub(crate) fn fail(&self) {
        self.closed.fetch_max(FAILED, Ordering::AcqRel);
    }

    /// The runtime destroyed the queue. Returns whether it was ever measured.
    pub(crate) fn mark_destroyed(&self) -> bool {
        self.closed.fetch_max(DESTROYED, Ordering::AcqRel);
        // Behind the store: from here on nobody makes signals for it.
        self.signals().is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.closed.load(Ordering::Acquire) == OPEN
    }

    pub(crate) fn is_destroyed(&self) -> bool {
        self.closed.load(Ordering::Acquire) == DESTROYED
    }

    /// Waits until nothing of ours is in flight; `false` if `timeout` passed before.
    pub(crate) fn wait_empty(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut flight = self.flight.lock();
        while !flight.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let (next, timed_out) = self.emptied.wait_timeout(flight, left);
            flight = next;
            if timed_out {
                return flight.is_empty();
            }
        }
        true
    }

    /// Publishes what retired since the last call. Only the reaper calls this.
    pub(crate) fn reap(self: &Arc<Self>, entries: &mut Vec<Entry>, carriers: &mut Vec<Signal>) {
        let Some(signals) = self.signals() else { return };
        // Asked first: what retired before the queue was closed is not lost.
        let closed = !self.is_open();
        // Acquire: what the packets wrote is visible before anybody is told.
        let value = self.device().load(signals.counter);
        self.flight.lock().retire(value, entries);
        for entry in entries.drain(..) {
            self.land(entry, carriers);
        }
        if closed {
            self.lose_rest(entries);
        }
        let mut flight = self.flight.lock();
        flight.landed(carriers);
        if flight.is_empty() {
            self.emptied.notify_all();
        }
    }

    /// Frees what the queue held. The runtime destroyed it, so no packet names its signals any more.
    pub(crate) fn release(&self) {
        if self.released.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(transition) = self.take_wanted() {
            transition.end();
        }
        self.agent.remove_lane(self.lane);
        self.free_signals();
        *self.signals.lock() = None;
    }

    pub(crate) fn free_signals(&self) {
        let mut carriers = Vec::new();
        self.flight.lock().take_carriers(usize::MAX, &mut carriers);
        let signals = self.signals();
        let queue_signals = signals.iter().flat_map(|signals| [signals.counter, signals.gate]);
        for signal in queue_signals.chain(carriers) {
            self.device().destroy_signal(signal);
        }
    }

    fn land(&self, entry: Entry, carriers: &mut Vec<Signal>) {
        let agent = &self.agent;
        match entry {
            Entry::Announcement(run) => agent.serialize(|machine| machine.announced(self.lane, run)),
            Entry::Mark(transition) => transition.end(),
            Entry::EndOfKernels(run) => agent.serialize(|machine| machine.retired(self.lane, run)),
            Entry::Dispatch(flying) => {
                let outcome = Outcome::Completed(self.times(&flying));
                if let Some(run) = flying.run {
                    agent.serialize(|machine| machine.retired(self.lane, run));
                }
                flying.ends.iter().for_each(|transition| transition.end());
                self.device().store(flying.carrier, 1);
                carriers.push(flying.carrier);
                publish(&flying, outcome);
            }
        }
    }

    /// The kernel's times, kept for the application as they are and clamped for ourselves.
    fn times(&self, flying: &Flying) -> DispatchTimes {
        let ask = || self.device().dispatch_times(self.agent.id, flying.carrier);
        let times = match flying.forwarded {
            0 => ask(),
            signal => self.agent.times.retired(signal, flying.dispatch, ask),
        };
        let Some(times) = times else { return DispatchTimes::default() };
        let latest = self.device().now_ns().max(flying.enqueued_ns);
        let clamp = |time: u64| time.clamp(flying.enqueued_ns, latest);
        DispatchTimes { start_ns: clamp(times.start_ns), end_ns: clamp(times.end_ns) }
    }

    /// Closes what will never retire. Its carriers may still be written by a stopped queue: they are given up.
    fn lose_rest(&self, entries: &mut Vec<Entry>) {
        self.flight.lock().abandon(entries);
        let reason = if self.is_destroyed() { LossReason::QueueDestroyed } else { LossReason::QueueError };
        for entry in entries.drain(..) {
            let flying = match entry {
                Entry::Dispatch(flying) => flying,
                Entry::Mark(transition) => {
                    transition.end();
                    continue;
                }
                Entry::Announcement(_) | Entry::EndOfKernels(_) => continue,
            };
            flying.ends.iter().for_each(|transition| transition.end());
            if flying.forwarded != 0 {
                self.agent.times.retired(flying.forwarded, flying.dispatch, || None);
            }
            for part in flying.uses.iter().flatten() {
                let _ = part.subscriber.take_grant(part.token);
            }
            if self.is_destroyed() {
                self.device().destroy_signal(flying.carrier);
            }
            publish(&flying, Outcome::Lost(reason));
        }
        self.agent.serialize(|machine| machine.forget_runs(self.lane));
    }
}

/// Tells everyone who instrumented a dispatch how it ended.
fn publish(flying: &Flying, outcome: Outcome) {
    for part in flying.uses.iter().flatten() {
        let event = DispatchEvent::Retired { token: part.token, outcome };
        let early = fault::is(Fault::LandedBeforePublished);
        if early {
            part.subscriber.landed();
        }
        part.subscriber.subscription.subscriber.publish(event);
        if !early {
            part.subscriber.landed();
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("id", &self.id).field("agent", &self.agent.id).finish_non_exhaustive()
    }
}
