//! An application's queue: what its write hook and the reaper share.
//!
//! [`landing`] is the reaper's side of it. Who touches what:
//!
//! * `word` and `scratch`: the hook, one at a time per queue (the runtime holds the queue's lock around it).
//! * `flight`: hook and reaper, locked for a few moves per batch.
//! * `signals`: made by the first hook that instruments, read by the reaper, destroyed by the reaper when the queue
//!   is gone. A queue that nobody measures costs no signal.

mod landing;

pub(crate) use landing::Landing;

use std::sync::Arc;

use wavescope_core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use wavescope_core::sync::{Condvar, Deadline, Mutex};
use wavescope_core::{AqlPacket, QueueId};

use crate::Error;
use crate::agent::AgentState;
use crate::device::{Device, Signal, SignalKind};
use crate::flight::{COUNTER_START, Entry, Flight};
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
    /// A free time carrier, 0 for none: a hook whose kernels are all declined needs no other, and no lock for it.
    reserve: AtomicU64,
    /// Why the queue takes no more instrumented work; the highest reason counts.
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
    /// Decremented behind the forwards of kernels that are only traced; made when there is the first.
    pub(crate) launches: Option<Signal>,
}

const OPEN: u32 = 0;
const GIVEN_UP: u32 = 1;
const FAILED: u32 = 2;
const DESTROYED: u32 = 3;

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
            reserve: AtomicU64::new(0),
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
            *signals = self.make_signals(self.reaper.take_bell()?).ok();
            if signals.is_none() {
                self.reaper.put_back();
            }
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
        Ok(QueueSignals { counter, bell, gate, launches: None })
    }

    /// The launch counter, made now if there was none.
    pub(crate) fn ensure_launches(&self) -> Option<Signal> {
        let mut signals = self.signals.lock();
        let made = signals.as_mut().filter(|_| self.is_open())?;
        if made.launches.is_none() {
            made.launches = self.device().create_signal(COUNTER_START, SignalKind::GpuOnly).ok();
        }
        made.launches
    }

    /// Takes the carrier that is kept in reserve.
    pub(crate) fn take_reserve(&self) -> Option<Signal> {
        let kept = self.reserve.swap(0, Ordering::AcqRel);
        (kept != 0).then_some(Signal(kept))
    }

    /// Keeps a carrier in reserve; returns it if there is one already.
    pub(crate) fn put_reserve(&self, carrier: Signal) -> Option<Signal> {
        let kept = self.reserve.compare_exchange(0, carrier.0, Ordering::AcqRel, Ordering::Relaxed);
        kept.err().map(|_| carrier)
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

    /// Holds back the agent's runs from `from` on until the dispatches in flight that no run covers have retired.
    pub(crate) fn await_uncovered(&self, from: RunId) {
        // Those that retire in order, and those that do not.
        let transitions = [Transition::begin(&self.agent, from), Transition::begin(&self.agent, from)];
        let [ordered, loose] = &transitions;
        let attached = {
            let mut flight = self.flight.lock();
            let last = flight.last_uncovered();
            [last.map(|last| last.ends.push(Arc::clone(ordered))).is_some(), flight.end_with_loose(loose)]
        };
        for (transition, attached) in transitions.into_iter().zip(attached) {
            if attached { self.reaper.hurry(transition) } else { transition.end() }
        }
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

    /// Something of ours broke while its packets were rewritten: it goes on as if nobody listened, and what was in flight is
    /// lost.
    pub(crate) fn give_up(&self) {
        self.closed.fetch_max(GIVEN_UP, Ordering::AcqRel);
    }

    /// Whether it was given up, and its packets still run.
    pub(crate) fn is_given_up(&self) -> bool {
        self.closed.load(Ordering::Acquire) == GIVEN_UP
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

    /// Waits until nothing of ours is in flight; `false` if that was not so at the `deadline`.
    pub(crate) fn wait_empty(&self, deadline: Deadline) -> bool {
        if self.flight.lock().has_loose() {
            self.reaper.wake();
        }
        self.reaper.stand_in(deadline, |soon| self.wait_landed(soon));
        self.wait_landed(deadline)
    }

    fn wait_landed(&self, deadline: Deadline) -> bool {
        let mut flight = self.flight.lock();
        while !flight.is_empty() {
            let (next, timed_out) = self.emptied.wait_timeout(flight, deadline.left());
            flight = next;
            if timed_out {
                return flight.is_empty();
            }
        }
        true
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
        carriers.extend(self.take_reserve());
        let signals = *self.signals.lock();
        let of_queue = signals.iter().flat_map(|made| [Some(made.counter), Some(made.gate), made.launches]);
        for signal in of_queue.flatten().chain(carriers) {
            self.device().destroy_signal(signal);
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("id", &self.id).field("agent", &self.agent.id).finish_non_exhaustive()
    }
}
