//! What interception keeps for one agent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::AgentId;
use wavescope_core::sync::Mutex;
use wavescope_core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::device::{Device, Signal};
use crate::fault::{self, Fault};
use crate::queue::Queue;
use crate::serializer::{Lane, Place, Release, RunId, Serializer};
use crate::snapshot::SnapshotCell;
use crate::subscribers::Snapshot;
use crate::times::Times;

/// One agent: its subscribers, its queues, and who may run.
pub(crate) struct AgentState {
    pub(crate) id: AgentId,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) snapshots: SnapshotCell<Snapshot>,
    /// The application's queues. Its lock is a leaf.
    queues: Mutex<Vec<Arc<Queue>>>,
    serialization: Mutex<Serialization>,
    pub(crate) times: Times,
    /// How many queues that nobody sees may run kernels on it.
    unseen_queues: AtomicU32,
    /// Each dispatch retires with a barrier packet of its own instead of its last packet.
    pub(crate) retire_by_barrier: AtomicBool,
}

/// How long a queue may keep others waiting with kernels that come after theirs, unless something else is set. Each
/// hand-over leaves the agent idle for some ten microseconds, so short turns are dear.
const TURN: Duration = Duration::from_micros(300);

/// The serializer with the signals that perform its effects. Its lock is a leaf.
#[derive(Debug, Default)]
pub(crate) struct Serialization {
    pub(crate) machine: Serializer,
    /// Gate signal of each lane, once it has one.
    gates: Vec<Option<Signal>>,
    /// The run that others have been waiting for, and since when.
    awaited: Option<(RunId, Instant)>,
    turn: Duration,
}

impl Serialization {
    /// How long others have been waiting for the granted run.
    fn waited(&mut self) -> Option<Duration> {
        let Some(run) = self.machine.awaited() else {
            self.awaited = None;
            return None;
        };
        let now = Instant::now();
        let known = self.awaited.filter(|(known, _)| *known == run);
        let (_, since) = *self.awaited.insert(known.unwrap_or((run, now)));
        Some(now - since)
    }
}

impl AgentState {
    pub(crate) fn new(id: AgentId, device: Arc<dyn Device>) -> Self {
        Self {
            id,
            device,
            snapshots: SnapshotCell::empty(),
            queues: Mutex::new(Vec::new()),
            serialization: Mutex::new(Serialization { turn: TURN, ..Default::default() }),
            times: Times::default(),
            unseen_queues: AtomicU32::new(0),
            retire_by_barrier: AtomicBool::new(false),
        }
    }

    /// Whether queues that nobody sees may run kernels on it.
    pub(crate) fn is_blind(&self) -> bool {
        self.unseen_queues.load(Ordering::Relaxed) > 0
    }

    /// Counted, not noted: one may come while the last one goes.
    pub(crate) fn unseen_queue_came(&self) {
        self.unseen_queues.fetch_add(1, Ordering::Relaxed);
    }

    /// One that came before this agent was known goes uncounted.
    pub(crate) fn unseen_queue_left(&self) {
        let fewer = |count: u32| count.checked_sub(1);
        let _ = self.unseen_queues.try_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
    }

    pub(crate) fn add_queue(&self, queue: &Arc<Queue>) {
        self.queues.lock().push(Arc::clone(queue));
    }

    pub(crate) fn remove_queue(&self, queue: &Arc<Queue>) {
        self.queues.lock().retain(|other| !Arc::ptr_eq(other, queue));
    }

    pub(crate) fn queues(&self) -> Vec<Arc<Queue>> {
        self.queues.lock().clone()
    }

    pub(crate) fn add_lane(&self) -> Lane {
        let mut serialization = self.serialization.lock();
        let lane = serialization.machine.add_lane();
        let needed = serialization.gates.len().max(lane.0 + 1);
        serialization.gates.resize(needed, None);
        lane
    }

    pub(crate) fn set_gate(&self, lane: Lane, gate: Signal) {
        self.serialization.lock().gates[lane.0] = Some(gate);
    }

    /// Forgets a lane; its gate signal is not touched after this returned.
    pub(crate) fn remove_lane(&self, lane: Lane) {
        // In one go: the lane may at once be another queue's.
        let mut serialization = self.serialization.lock();
        let release = serialization.machine.remove_lane(lane);
        if fault::is(Fault::LaneFreedBeforeGate) {
            drop(serialization);
            serialization = self.serialization.lock();
        }
        serialization.gates[lane.0] = None;
        self.open(&serialization, release);
    }

    /// Tells the serializer something and opens the gate that it releases.
    ///
    /// The gate is opened under the lock, so that [`remove_lane`](Self::remove_lane) is a point after which nobody
    /// stores to the signal. It is a signal without an event: the store is one atomic write.
    pub(crate) fn serialize(&self, tell: impl FnOnce(&mut Serializer) -> Option<Release>) {
        let mut serialization = self.serialization.lock();
        let release = tell(&mut serialization.machine);
        self.open(&serialization, release);
    }

    /// Asks the serializer something that releases nothing.
    pub(crate) fn place<T>(&self, place: impl FnOnce(&mut Serializer) -> T) -> T {
        place(&mut self.serialization.lock().machine)
    }

    /// Finds the run for the next kernel of a lane, of which `returns` grants must be returned.
    pub(crate) fn place_kernel(
        &self,
        lane: Lane,
        obstructed: bool,
        covered: Option<RunId>,
        returns: usize,
    ) -> Place {
        let mut serialization = self.serialization.lock();
        let turn_is_over = serialization.waited().is_some_and(|waited| waited >= serialization.turn);
        let machine = &mut serialization.machine;
        let place = machine.place(lane, obstructed, covered, turn_is_over);
        for _ in 0..returns {
            machine.expect_return(lane, place.run);
        }
        place
    }

    pub(crate) fn set_turn(&self, turn: Duration) {
        self.serialization.lock().turn = turn;
    }

    /// Whether a queue waits for the agent: it goes on only when somebody sees what retires.
    pub(crate) fn somebody_waits(&self) -> bool {
        self.serialization.lock().machine.somebody_waits()
    }

    /// Overruns a run that others have been waiting for longer than `patience`. Returns when to look again, if anybody
    /// waits.
    pub(crate) fn watch(&self, patience: Duration) -> Option<Duration> {
        let mut serialization = self.serialization.lock();
        let left = patience.saturating_sub(serialization.waited()?);
        if left.is_zero() {
            tracing::warn!(agent = %self.id, "a kernel keeps others waiting: they run beside it now");
            let release = serialization.machine.overrun();
            self.open(&serialization, release);
        }
        Some(left)
    }

    fn open(&self, serialization: &Serialization, release: Option<Release>) {
        let Some(Release(lane)) = release else { return };
        // A lane that waits has emitted a gate, so it has a signal.
        if let Some(gate) = serialization.gates[lane.0] {
            self.device.store(gate, 0);
        }
    }
}

impl std::fmt::Debug for AgentState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentState").field("id", &self.id).finish_non_exhaustive()
    }
}
