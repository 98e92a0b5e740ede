//! The write hook's work: from the application's batch to what goes into the ring.
//!
//! Around one instrumented kernel, in this order:
//!
//! | packet | barrier bit | completion signal |
//! |---|---|---|
//! | announcement, only behind an application packet that may block | yes | retire counter |
//! | bell, only before a gate, if something retires in front of it | yes | the reaper's bell |
//! | gate, only if the agent must be waited for | yes | gate signal (0 → −1) |
//! | *before* packets of each service, in service order | as the service says; the first also if something unordered of the queue may still run | as the service says |
//! | the kernel, otherwise untouched | yes, if anything was inserted before it or the agent is serialized | time carrier |
//! | forward, only if the application gave a signal | yes | the application's |
//! | *after* packets, services in reverse order (programs nest) | last one: yes | last one: retire counter |
//!
//! Behind the batch stands one more bell, if anything in it retires: the reaper is woken once for all of it.
//!
//! The forward stands before the read-back, so the application goes on while counters are read. Without *after*
//! packets an empty barrier completes the retire counter. A kernel that all subscribers declined only gets the
//! barrier bit, and only if the agent is serialized; behind adjacent ones stands one empty barrier that retires,
//! or, where the last has no signal of its own, that kernel retires itself.
//!
//! A kernel that is only traced completes its time carrier and is otherwise as the application made it. If the application
//! gave it a signal, a forward stands behind the kernels of the batch: a barrier packet *without* the barrier bit, which
//! waits for the carrier. Behind the forwards one more such packet decrements the launch counter: packets launch in order,
//! so from there on nothing waits for those carriers.

mod programs;
mod traced;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wavescope_core::sync::atomic::Ordering;
use wavescope_core::{AqlPacket, Dispatch, DispatchId, PacketType};

use crate::device::{Signal, SignalKind};
use crate::fault::{self, Fault};
use crate::flight::{Entry, Loose};
use crate::kernel_trace::Traced;
use crate::packets::{barrier, is_kernel, kernel_fields, may_block, split_dependency};
use crate::queue::{Queue, QueueSignals};
use crate::serializer::{Gate, RunId};
use crate::subscribers::Snapshot;
use crate::thread_mark::current_thread;

/// What the hook of one queue keeps from batch to batch, so that it allocates only until it is warm.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The queue's, once it has some.
    signals: Option<QueueSignals>,
    out: Vec<AqlPacket>,
    before: Vec<AqlPacket>,
    after: [Vec<AqlPacket>; 2],
    entries: Vec<Entry>,
    carriers: Vec<Signal>,
    traced: Vec<Traced>,
    loose: Vec<Loose>,
    /// Carriers, and the application's signals that are to fall with them.
    forwards: Vec<(Signal, u64)>,
    /// How often the launch counter will have been decremented by what was emitted.
    launches: i64,
    /// The snapshot period in which the two flags below were kept; 0 for none.
    period: u64,
    /// An application packet that may block lies behind the last kernel.
    obstructed: bool,
    /// Everything in the queue so far ends before the next packet starts.
    ordered: bool,
}

impl Queue {
    /// Rewrites one batch, `first` being the index of its first packet in the application's queue, and hands the result to
    /// `write`, once.
    ///
    /// With nobody subscribed to the agent this is one load, and `write` gets `packets` itself.
    pub(crate) fn rewrite(
        self: &Arc<Self>,
        packets: &[AqlPacket],
        first: u64,
        write: &mut dyn FnMut(&[AqlPacket]),
    ) {
        let Some(snapshot) = self.agent.snapshots.read(&self.word) else { return write(packets) };
        if !self.is_open() {
            return write(packets);
        }
        if snapshot.is_quiet() {
            self.forget_times(packets, &snapshot);
            return write(packets);
        }
        let mut scratch = self.scratch.lock();
        if scratch.signals.is_none() {
            scratch.signals = self.ensure_signals();
        }
        // Without signals the batch goes through as it is: the application runs, nobody is asked.
        let Some(signals) = scratch.signals else { return write(packets) };
        if !self.instrument(packets, first, &snapshot, signals, &mut scratch) {
            return write(packets);
        }
        write(&scratch.out);
        if fault::is(Fault::ListedAfterWritten) {
            scratch.list(self);
        }
        scratch.out.clear();
    }

    /// Fills `scratch` with what is to be written. If something of ours breaks, the queue is given up and `scratch` left
    /// clean; `false` then.
    fn instrument(
        self: &Arc<Self>,
        packets: &[AqlPacket],
        first: u64,
        snapshot: &Snapshot,
        signals: QueueSignals,
        scratch: &mut Scratch,
    ) -> bool {
        let rewrite = |scratch: &mut Scratch| {
            scratch.begin(snapshot, first);
            Rewriter::new(self, snapshot, signals, scratch).batch(packets);
        };
        if cfg!(loom) {
            // A model's assertions must fail it.
            rewrite(scratch);
            return true;
        }
        let done = catch_unwind(AssertUnwindSafe(|| rewrite(scratch))).is_ok();
        if !done {
            tracing::error!(queue = %self.id, "interception gives up a queue: its hook panicked");
            // What was listed so far is lost like all the rest, and told so.
            scratch.list(self);
            *scratch = Scratch::default();
            self.give_up();
            self.reaper.wake();
        }
        done
    }

    /// Nobody is asked, but earlier kernels left times: those of signals that are used again end here.
    fn forget_times(&self, packets: &[AqlPacket], snapshot: &Snapshot) {
        let mut emptied = false;
        for packet in packets.iter().filter(|packet| packet.completion_signal() != 0) {
            emptied |= self.agent.times.forget(packet.completion_signal());
        }
        if emptied {
            self.agent.snapshots.clear_if_current(snapshot);
        }
    }
}

impl Scratch {
    /// Lists the batch as in flight. Done before its packets are visible, so that the retire counter never falls further
    /// than the list reaches.
    fn list(&mut self, queue: &Queue) {
        if let Some(carrier) = self.carriers.pop() {
            self.carriers.extend(queue.put_reserve(carrier));
        }
        let nothing = self.entries.is_empty() && self.loose.is_empty() && self.carriers.is_empty();
        if nothing {
            return;
        }
        let mut flight = queue.flight.lock();
        flight.push_all(&mut self.entries);
        flight.push_traced(&mut self.traced, &mut self.loose);
        flight.return_carriers(&mut self.carriers);
    }

    fn begin(&mut self, snapshot: &Snapshot, first: u64) {
        if self.period != snapshot.period {
            self.period = snapshot.period;
            // What went through unseen may still run, and may block.
            (self.obstructed, self.ordered) = (first > 0, first == 0);
        }
    }
}

/// One batch under way.
struct Rewriter<'a> {
    queue: &'a Arc<Queue>,
    snapshot: &'a Snapshot,
    signals: QueueSignals,
    scratch: &'a mut Scratch,
    /// The run that covers declined kernels at the end of what was emitted; it still needs a packet that retires.
    tail: Option<RunId>,
    /// When the batch was enqueued, asked once.
    now_ns: Option<u64>,
    /// Something retires that no bell announces yet.
    unheard: bool,
    bells: usize,
    /// Packets of the batch that have yet to be looked at.
    left: usize,
}

impl<'a> Rewriter<'a> {
    fn new(
        queue: &'a Arc<Queue>,
        snapshot: &'a Snapshot,
        signals: QueueSignals,
        scratch: &'a mut Scratch,
    ) -> Self {
        Self {
            queue,
            snapshot,
            signals,
            scratch,
            tail: None,
            now_ns: None,
            unheard: false,
            bells: 0,
            left: 0,
        }
    }

    fn batch(&mut self, packets: &[AqlPacket]) {
        self.scratch.carriers.extend(self.queue.take_reserve());
        if let Some(transition) = self.queue.take_wanted() {
            // Behind what went through unseen, in front of everything that may have to wait for it.
            self.scratch.out.push(barrier(0, self.signals.counter.0));
            self.list(Entry::Mark(transition));
            self.ring_bell();
        }
        for (index, packet) in packets.iter().enumerate() {
            self.left = packets.len() - index;
            // Only an agent that is given away in turns must not be held while a kernel waits.
            match split_dependency(packet).filter(|_| self.snapshot.serialize) {
                Some([wait, kernel]) => {
                    self.other(&wait);
                    self.kernel(&kernel);
                }
                None if is_kernel(packet) => self.kernel(packet),
                None => self.other(packet),
            }
        }
        self.end_tail();
        self.ring_bell();
        if self.bells > 0 {
            self.queue.reaper.expect_rings(self.bells);
        }
        if !fault::is(Fault::ListedAfterWritten) {
            self.scratch.list(self.queue);
        }
    }

    fn other(&mut self, packet: &AqlPacket) {
        // Before it: what it waits for may need the agent that our kernels hold, or a signal of theirs.
        self.forward();
        if may_block(packet) {
            self.end_tail();
            self.scratch.obstructed = true;
        }
        self.forget_times(packet);
        let header = packet.header();
        let waits_for_all = matches!(header.kind(), PacketType::BARRIER_AND | PacketType::BARRIER_OR);
        self.scratch.ordered = waits_for_all && header.barrier();
        self.scratch.out.push(*packet);
    }

    fn kernel(&mut self, packet: &AqlPacket) {
        // Without a carrier nobody is asked: who answered would wait for a dispatch that nobody can follow.
        let Some(carrier) = self.carrier() else {
            let run = self.snapshot.serialize.then(|| self.place(0));
            return self.declined(packet, run);
        };
        let dispatch = self.describe(packet);
        let traced = self.record(&dispatch);
        let answers = self.ask(&dispatch);
        let run = (self.snapshot.serialize && answers.serialize).then(|| self.place(answers.returns()));
        let traced = traced.map(|traced| traced.taking_off(run.is_some()));
        match traced {
            traced if answers.instrument => {
                self.instrumented(packet, &dispatch, answers, carrier, run, traced);
            }
            Some(traced) => self.only_traced(packet, &dispatch, carrier, run, traced),
            None => {
                self.scratch.carriers.push(carrier);
                self.declined(packet, run);
            }
        }
    }

    fn describe(&self, packet: &AqlPacket) -> Dispatch {
        let fields = kernel_fields(packet);
        Dispatch {
            id: DispatchId(self.queue.dispatches.fetch_add(1, Ordering::Relaxed) + 1),
            agent: self.queue.agent.id,
            queue: self.queue.id,
            kernel_object: fields.kernel_object,
            grid: fields.grid,
            workgroup: fields.workgroup,
            private_segment_bytes: fields.private_segment_bytes,
            group_segment_bytes: fields.group_segment_bytes,
            thread: current_thread(),
        }
    }

    /// A free carrier, or a new one until enough are there.
    fn carrier(&mut self) -> Option<Signal> {
        if !self.snapshot.carries_times() {
            return None;
        }
        if self.scratch.carriers.is_empty() {
            // For the rest of the batch at once.
            self.queue.flight.lock().take_carriers(self.left, &mut self.scratch.carriers);
        }
        let device = self.queue.device();
        self.scratch.carriers.pop().or_else(|| device.create_signal(1, SignalKind::GpuOnly).ok())
    }

    /// Finds the run of a kernel, of which `returns` grants must be returned, and emits what it has to wait for.
    fn place(&mut self, returns: usize) -> RunId {
        let lane = self.queue.lane;
        let (obstructed, covered) = (self.scratch.obstructed, self.tail);
        let place = self.queue.agent.place_kernel(lane, obstructed, covered, returns);
        self.scratch.obstructed = false;
        if self.tail.is_some_and(|run| run != place.run) {
            self.end_tail();
        }
        if place.gate == Gate::None {
            return place.run;
        }
        // What waits for our kernels must not wait for the gate.
        self.forward();
        if place.gate == Gate::AnnounceAndWait {
            self.scratch.out.push(barrier(0, self.signals.counter.0));
            self.list(Entry::Announcement(place.run));
        }
        // What retires in front of the gate may be what opens it.
        self.ring_bell();
        let gate = self.signals.gate.0;
        self.scratch.out.push(barrier(gate, gate));
        self.scratch.ordered = true;
        place.run
    }

    /// The application's signal of a packet that is not instrumented no longer stands for an earlier kernel.
    fn forget_times(&self, packet: &AqlPacket) {
        if packet.completion_signal() != 0 {
            self.queue.agent.times.forget(packet.completion_signal());
        }
    }

    fn declined(&mut self, packet: &AqlPacket, run: Option<RunId>) {
        self.forget_times(packet);
        self.unordered(packet, run);
    }

    /// Emits a kernel that nothing of ours stands around.
    fn unordered(&mut self, packet: &AqlPacket, run: Option<RunId>) {
        let mut kernel = *packet;
        if let Some(run) = run {
            kernel.set_header(kernel.header().with_barrier());
            self.tail = Some(run);
        }
        self.scratch.out.push(kernel);
        self.scratch.ordered = false;
    }

    /// Lets declined kernels at the end of what was emitted retire.
    fn end_tail(&mut self) {
        self.forward();
        let Some(run) = self.tail.take() else { return };
        let counter = self.signals.counter;
        let last = self.scratch.out.last();
        let silent = last.is_some_and(|last| is_kernel(last) && last.completion_signal() == 0);
        let itself = silent && !self.retires_by_barrier();
        retire_with(&mut self.scratch.out, itself, counter);
        self.scratch.ordered |= !itself;
        self.list(Entry::EndOfKernels(run));
    }

    /// Whether a barrier packet of its own decrements the retire counter for each dispatch.
    fn retires_by_barrier(&self) -> bool {
        self.queue.agent.retire_by_barrier.load(Ordering::Relaxed)
    }

    /// Lists what the packet just emitted retires.
    fn list(&mut self, entry: Entry) {
        self.scratch.entries.push(entry);
        self.unheard = true;
    }

    /// Wakes the reaper behind everything emitted so far.
    fn ring_bell(&mut self) {
        if std::mem::take(&mut self.unheard) {
            self.scratch.out.push(barrier(0, self.signals.bell.0));
            self.scratch.ordered = true;
            self.bells += 1;
        }
    }

    fn now_ns(&mut self) -> u64 {
        *self.now_ns.get_or_insert_with(|| self.queue.device().now_ns())
    }
}

/// Makes the last packet of `out` retire, or an empty barrier behind it.
fn retire_with(out: &mut Vec<AqlPacket>, last: bool, counter: Signal) {
    match out.last_mut() {
        Some(packet) if last => {
            packet.set_completion_signal(counter.0);
            packet.set_header(packet.header().with_barrier());
        }
        _ => out.push(barrier(0, counter.0)),
    }
}
