//! Which queue of an agent may run kernels: a pure state machine, no signals, threads or clocks.
//!
//! Counters and traces belong to the whole agent, so while an agent is serialized its kernels run one at a time. The
//! unit that is granted is a **run**: adjacent kernels of one queue, from its first kernel to the last packet of
//! its last one. All kernels of a run carry the BARRIER bit, so inside a run the queue itself keeps order.
//!
//! # States of a run
//!
//! ```text
//!               place: agent free, queue unobstructed
//!            ┌───────────────────────────────────────────────┐
//!  (new) ────┤                                               ▼
//!            │ place: otherwise        ┌─────────┐  agent  ┌─────────┐  all retired,
//!            └────▶ Waiting ─ready────▶│ Waiting │ free──▶ │ Granted │  all returned ──▶ (gone)
//!                   not ready          │  ready  │         └─────────┘
//!                                      └─────────┘
//! ```
//!
//! * **Waiting.** The queue holds a *gate*: a barrier packet that waits for the queue's block signal. A run is **ready**
//!   when nothing but that gate keeps its queue from running: at once if the queue was idle and unobstructed;
//!   when the run before it on the same queue is gone; or, if an application packet that may block lies before
//!   it, when its *announcement* (a barrier packet in front of the gate) retires. A run that is not ready never
//!   stands in the way of one that is: queue A {barrier on S, kernel}, queue B {kernel that completes S} ends.
//! * **Granted.** At most one run per agent. It takes further kernels of its queue without any packet as long as no
//!   other queue has waited for a turn, so one queue alone never makes a round trip through the CPU.
//! * **Ahead.** The next run of the same queue, if no other queue is ready, nothing of the application lies between and
//!   all grants of the granted run were returned: its gate is opened before the queue comes to it. One run at most, and
//!   only once the gate before it was passed: both are the same signal.
//! * **Overrun.** A granted run that keeps ready ones waiting for longer than the watchdog allows: its kernels may be
//!   spinning on theirs. It goes on beside the next grant, and is gone like any other.
//! * **Held.** A *hold* keeps back the runs that begin after it, so that what went through unseen before it can end
//!   first. Runs from before it go on being granted: what was unseen may stand behind their gates.
//! * **Accompanied.** A run that was overrun, or granted while an overrun one or a *straggler* may still run: what a hold
//!   waited for in vain. It takes no more kernels once that is over, so that later kernels are alone again.
//! * **Gone** when every packet that reports for it retired and every grant that must be returned was returned.
//!
//! A run is *closed* (takes no more kernels) by an application packet that may block, by a kernel whose grant must be
//! returned, and by another queue that has been ready for a whole *turn*; while it waits also at [`MAX_KERNELS`].
//!
//! The caller performs the only effect, a [`Release`]: store 0 to the block signal of that queue. The gate's own
//! completion takes the signal to −1, so the next gate of the queue waits again.

use std::collections::VecDeque;

/// A queue's place in its agent's serializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(pub(crate) usize);

/// Names a run; grows in the order of enqueue, so it is also the order of grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunId(pub(crate) u64);

/// Kernels that a run may cover before it is granted: a queue that is fed without pause lets the others in after that many.
pub(crate) const MAX_KERNELS: u32 = 256;

/// Open the gate of this queue.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release(pub(crate) Lane);

/// Where a kernel goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) run: RunId,
    pub(crate) gate: Gate,
}

/// What to emit before the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing: its run is granted, or the gate lies before an earlier kernel.
    None,
    /// The gate.
    Wait,
    /// An announcement that retires, then the gate.
    AnnounceAndWait,
}

#[derive(Debug)]
struct Run {
    id: RunId,
    kernels: u32,
    /// Packets that will retire for it.
    outstanding: u32,
    /// Grants that a subscriber has yet to return.
    unreturned: u32,
    open: bool,
    ready: bool,
    /// The queue has gone through its gate, or it has none.
    passed: bool,
    /// An announcement makes it ready, not the end of the run before it.
    announces: bool,
    /// It was overrun, or let in beside what may still run.
    accompanied: bool,
}

impl Granted {
    fn newest_first(&mut self) -> impl Iterator<Item = (Lane, &mut Run)> {
        let lane = self.lane;
        self.ahead.iter_mut().chain([&mut self.run]).map(move |run| (lane, run))
    }
}

impl Run {
    /// Whether it takes another kernel without a gate.
    fn accepts(&self, granted: bool, must_yield: bool) -> bool {
        self.open && if granted { !must_yield } else { self.kernels < MAX_KERNELS }
    }
}

/// The agent's holder.
#[derive(Debug)]
struct Granted {
    lane: Lane,
    run: Run,
    /// The first of its runs since the queue got the agent.
    since: RunId,
    /// The queue's next run, granted already.
    ahead: Option<Run>,
}

#[derive(Debug, Default)]
struct LaneState {
    in_use: bool,
    /// Oldest first. Only the first can be granted: the queue keeps order.
    waiting: VecDeque<Run>,
}

/// The serializer of one agent.
#[derive(Debug, Default)]
pub(crate) struct Serializer {
    lanes: Vec<LaneState>,
    granted: Option<Granted>,
    /// Runs that were granted and overrun.
    overrun: Vec<(Lane, Run)>,
    /// Runs that began with one of these or later are not granted.
    holds: Vec<RunId>,
    /// Holds that were given up: what they waited for may still run.
    stragglers: Vec<RunId>,
    /// What began before takes no more kernels: they came behind something that was held.
    since: RunId,
    next: u64,
}

impl Serializer {
    /// Adds a queue.
    pub(crate) fn add_lane(&mut self) -> Lane {
        let free = self.lanes.iter().position(|lane| !lane.in_use);
        let index = free.unwrap_or_else(|| {
            self.lanes.push(LaneState::default());
            self.lanes.len() - 1
        });
        self.lanes[index].in_use = true;
        Lane(index)
    }

    /// Removes a queue that was destroyed, with its runs; a grant that it held goes on.
    pub(crate) fn remove_lane(&mut self, lane: Lane) -> Option<Release> {
        let release = self.forget_runs(lane);
        self.lanes[lane.0].in_use = false;
        release
    }

    /// Drops all runs of a queue that the runtime stopped; a grant that it held goes on.
    pub(crate) fn forget_runs(&mut self, lane: Lane) -> Option<Release> {
        self.lanes[lane.0].waiting.clear();
        self.overrun.retain(|(owner, _)| *owner != lane);
        self.granted.take_if(|holder| holder.lane == lane);
        self.grant_next()
    }

    /// Finds the run for the next kernel of `lane`.
    ///
    /// `obstructed` says that an application packet which may block lies between the lane's previous kernel and
    /// this one. A packet will retire for the kernel, and the run cannot go before it; if the kernel's run is
    /// `covered`, that packet was announced by an earlier call. `turn_is_over` says that the granted run has kept others
    /// waiting for long enough.
    pub(crate) fn place(
        &mut self,
        lane: Lane,
        obstructed: bool,
        covered: Option<RunId>,
        turn_is_over: bool,
    ) -> Place {
        let (must_yield, since) = (turn_is_over && self.other_is_ready(lane), self.since);
        let (run, gate) = match self.last_run(lane) {
            Some((run, granted)) if !obstructed && run.id >= since && run.accepts(granted, must_yield) => {
                (run, Gate::None)
            }
            _ => self.new_run(lane, obstructed),
        };
        run.kernels = run.kernels.saturating_add(1);
        run.outstanding += u32::from(covered != Some(run.id));
        Place { run: run.id, gate }
    }

    /// Says that the grant of `run` lasts until a subscriber returns it; the run takes no more kernels.
    pub(crate) fn expect_return(&mut self, lane: Lane, run: RunId) {
        if let Some(run) = self.find(lane, run) {
            run.unreturned += 1;
            run.open = false;
        }
    }

    /// A subscriber returned a grant. Before the run's end this also lets it take kernels again.
    pub(crate) fn returned(&mut self, lane: Lane, run: RunId) -> Option<Release> {
        let is_overrun = self.overrun.iter().any(|(_, overrun)| overrun.id == run);
        let found = self.find(lane, run)?;
        found.unreturned = found.unreturned.saturating_sub(1);
        // Beside an overrun run others hold the agent.
        found.open = found.unreturned == 0 && !is_overrun;
        self.settle(lane, run).or_else(|| self.grant_ahead())
    }

    /// A packet that reports for `run` retired.
    pub(crate) fn retired(&mut self, lane: Lane, run: RunId) -> Option<Release> {
        let found = self.find(lane, run)?;
        found.outstanding = found.outstanding.saturating_sub(1);
        found.passed = true;
        self.settle(lane, run).or_else(|| self.grant_ahead())
    }

    /// The announcement of `run` retired: only its gate keeps the queue now.
    pub(crate) fn announced(&mut self, lane: Lane, run: RunId) -> Option<Release> {
        self.find(lane, run)?.ready = true;
        self.grant_next()
    }

    /// The run with which the holder got the agent, if ready runs of other queues wait for its end.
    pub(crate) fn awaited(&self) -> Option<RunId> {
        let holder = self.granted.as_ref()?;
        self.other_is_ready(holder.lane).then_some(holder.since)
    }

    /// Whether a queue may stand before a gate, or soon, that is not open yet.
    pub(crate) fn somebody_waits(&self) -> bool {
        // The holder has a whole run to go through before it comes to the gate behind.
        let ahead = self.granted.as_ref().filter(|holder| holder.ahead.is_some()).map(|holder| holder.lane.0);
        let mut waiting = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.waiting.is_empty());
        waiting.any(|(index, _)| ahead != Some(index))
    }

    /// Gives the agent to the next run though the granted one is not over.
    pub(crate) fn overrun(&mut self) -> Option<Release> {
        let Granted { lane, run, ahead, .. } = self.granted.take()?;
        for mut run in [run].into_iter().chain(ahead) {
            (run.open, run.accompanied) = (false, true);
            self.overrun.push((lane, run));
        }
        self.grant_next()
    }

    /// Whether kernels of other queues may have run beside those of `run`, which is granted.
    pub(crate) fn is_accompanied(&mut self, lane: Lane, run: RunId) -> bool {
        self.find(lane, run).is_some_and(|run| run.accompanied)
    }

    /// Holds back the runs that begin from now on, until [`end_hold`](Self::end_hold) with what this returned.
    pub(crate) fn hold(&mut self) -> RunId {
        let from = RunId(self.next);
        self.holds.push(from);
        self.since = from;
        from
    }

    /// Holds back the same runs once more.
    pub(crate) fn hold_again(&mut self, from: RunId) {
        self.holds.push(from);
    }

    /// One of the holds from `from` on is over, also one that was given up.
    pub(crate) fn end_hold(&mut self, from: RunId) -> Option<Release> {
        if take(&mut self.holds, from) {
            return self.grant_next();
        }
        if take(&mut self.stragglers, from) {
            self.company_left();
        }
        None
    }

    /// What one of the holds from `from` on waits for did not end in time.
    pub(crate) fn give_up_hold(&mut self, from: RunId) -> Option<Release> {
        if take(&mut self.holds, from) {
            self.stragglers.push(from);
        }
        self.grant_next()
    }

    /// Whether something that is not the holder's may still run.
    fn has_company(&self) -> bool {
        !self.overrun.is_empty() || !self.stragglers.is_empty()
    }

    /// Something that ran beside the holder is over: if it was the last, kernels from now on are alone.
    fn company_left(&mut self) {
        if !self.has_company() {
            self.granted
                .iter_mut()
                .flat_map(Granted::newest_first)
                .for_each(|(_, run)| run.open &= !run.accompanied);
        }
    }

    /// Whether a hold keeps this run back.
    fn is_held(holds: &[RunId], run: RunId) -> bool {
        holds.iter().any(|from| *from <= run)
    }

    /// Whether no run waits or is granted.
    #[cfg(test)]
    fn is_idle(&self) -> bool {
        self.granted.is_none()
            && self.overrun.is_empty()
            && self.lanes.iter().all(|lane| lane.waiting.is_empty())
    }

    fn new_run(&mut self, lane: Lane, obstructed: bool) -> (&mut Run, Gate) {
        let follows = self.last_run(lane).map(|(run, _)| run.open = false).is_some();
        let ready = !obstructed && !follows;
        let run = Run {
            id: RunId(self.next),
            kernels: 0,
            outstanding: 0,
            unreturned: 0,
            open: true,
            ready,
            passed: false,
            announces: obstructed,
            accompanied: self.has_company(),
        };
        self.next += 1;
        if ready && self.granted.is_none() && self.holds.is_empty() {
            let (since, run) = (run.id, Run { passed: true, ..run });
            let granted = Granted { lane, run, since, ahead: None };
            return (&mut self.granted.insert(granted).run, Gate::None);
        }
        // Behind a run of its own the announcement is that run's end, unless something of the application lies
        // in between.
        let gate = if obstructed { Gate::AnnounceAndWait } else { Gate::Wait };
        let waiting = &mut self.lanes[lane.0].waiting;
        waiting.push_back(run);
        let last = waiting.len() - 1;
        (&mut waiting[last], gate)
    }

    /// Takes `run` away if it has nothing left, and gives the agent to the next.
    fn settle(&mut self, lane: Lane, run: RunId) -> Option<Release> {
        let done = |holder: Lane, found: &Run| {
            holder == lane && found.id == run && found.outstanding == 0 && found.unreturned == 0
        };
        if let Some(mut holder) = self.granted.take_if(|holder| done(holder.lane, &holder.run)) {
            if let Some(ahead) = holder.ahead.take() {
                holder.run = ahead;
                self.granted = Some(holder);
                return None;
            }
        } else if let Some(index) = self.overrun.iter().position(|(holder, found)| done(*holder, found)) {
            self.overrun.remove(index);
            self.company_left();
        } else {
            return None;
        }
        if !self.overrun.iter().any(|(holder, _)| *holder == lane)
            && let Some(next) = self.lanes[lane.0].waiting.front_mut().filter(|next| !next.announces)
        {
            next.ready = true;
        }
        self.grant_next()
    }

    /// Opens the holder's next gate before it comes to it, where nobody else wants the agent.
    fn grant_ahead(&mut self) -> Option<Release> {
        let holder = self.granted.as_ref()?;
        let lane = holder.lane;
        if holder.ahead.is_some() || holder.run.unreturned > 0 || !holder.run.passed {
            return None;
        }
        let next = self.lanes[lane.0].waiting.front()?;
        if next.announces || Self::is_held(&self.holds, next.id) || self.other_is_ready(lane) {
            return None;
        }
        let mut next = self.lanes[lane.0].waiting.pop_front()?;
        next.accompanied = self.has_company();
        self.granted.as_mut()?.ahead = Some(next);
        Some(Release(lane))
    }

    fn grant_next(&mut self) -> Option<Release> {
        if self.granted.is_some() {
            return None;
        }
        let may_run = |run: &&Run| run.ready && !Self::is_held(&self.holds, run.id);
        let fronts = self
            .lanes
            .iter()
            .enumerate()
            .filter_map(|(index, lane)| lane.waiting.front().filter(may_run).map(|run| (run.id, index)));
        let (_, index) = fronts.min()?;
        let mut run = self.lanes[index].waiting.pop_front()?;
        run.accompanied = self.has_company();
        let lane = Lane(index);
        self.granted = Some(Granted { lane, since: run.id, run, ahead: None });
        Some(Release(lane))
    }

    fn other_is_ready(&self, lane: Lane) -> bool {
        let mut others = self.lanes.iter().enumerate().filter(|(index, _)| *index != lane.0);
        others.any(|(_, other)| other.waiting.front().is_some_and(|run| run.ready))
    }

    /// The newest run of a lane, and whether it is the granted one.
    fn last_run(&mut self, lane: Lane) -> Option<(&mut Run, bool)> {
        if let Some(run) = self.lanes[lane.0].waiting.back_mut() {
            return Some((run, false));
        }
        let granted = self.granted.iter_mut().flat_map(Granted::newest_first);
        // Later ones of a queue stand behind earlier ones.
        let overrun = self.overrun.iter_mut().rev().map(|(owner, run)| (*owner, run));
        granted.chain(overrun).find_map(|(owner, run)| (owner == lane).then_some((run, true)))
    }

    fn find(&mut self, lane: Lane, id: RunId) -> Option<&mut Run> {
        let granted = self.granted.iter_mut().flat_map(Granted::newest_first);
        let overrun = self.overrun.iter_mut().map(|(owner, run)| (*owner, run));
        for (owner, run) in granted.chain(overrun) {
            if owner == lane && run.id == id {
                return Some(run);
            }
        }
        let waiting = &mut self.lanes[lane.0].waiting;
        let index = waiting.binary_search_by_key(&id, |run| run.id).ok()?;
        waiting.get_mut(index)
    }
}

/// Takes one of `holds` that is `from` away.
fn take(holds: &mut Vec<RunId>, from: RunId) -> bool {
    let index = holds.iter().position(|hold| *hold == from);
    index.map(|index| holds.swap_remove(index)).is_some()
}

#[cfg(test)]
mod tests;
