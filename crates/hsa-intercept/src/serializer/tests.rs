use super::*;

fn lanes<const N: usize>(serializer: &mut Serializer) -> [Lane; N] {
    std::array::from_fn(|_| serializer.add_lane())
}

#[test]
fn one_queue_alone_never_waits() {
    let mut serializer = Serializer::default();
    let [a] = lanes(&mut serializer);
    let first = serializer.place(a, false, None, true);
    assert_eq!(first.gate, Gate::None);
    for _ in 1..16_384 {
        assert_eq!(serializer.place(a, false, None, true), first, "the run is extended without a packet");
    }
    for _ in 0..16_384 {
        assert_eq!(serializer.retired(a, first.run), None);
    }
    assert!(serializer.is_idle());
    assert_eq!(serializer.place(a, false, None, true).gate, Gate::None);
}

#[test]
fn the_holder_goes_on_until_its_turn_is_over() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, false);
    let on_b = serializer.place(b, false, None, false);
    assert_eq!(on_b.gate, Gate::Wait);
    assert_eq!(serializer.awaited(), Some(on_a.run));
    assert_eq!(serializer.place(a, false, None, false), on_a);
    assert_eq!(serializer.place(a, false, None, true).gate, Gate::Wait);
    assert_eq!(serializer.retired(a, on_a.run), None, "one more of the run is out");
    assert_eq!(serializer.retired(a, on_a.run), Some(Release(b)));
}

#[test]
fn a_queue_that_waits_gathers_kernels_up_to_a_limit() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(on_b.gate, Gate::Wait);
    for _ in 1..MAX_KERNELS {
        assert_eq!(serializer.place(b, false, None, true), Place { run: on_b.run, gate: Gate::None });
    }
    let next = serializer.place(b, false, None, true);
    assert_eq!(next.gate, Gate::Wait, "one more begins another run");
    let behind = serializer.place(a, false, None, true);
    assert_eq!(serializer.retired(a, on_a.run), Some(Release(b)));
    for kernel in 1..=MAX_KERNELS {
        let release = serializer.retired(b, on_b.run);
        let expected = (kernel == MAX_KERNELS).then_some(Release(b));
        assert_eq!(release, expected, "its second run is older than what A gathered meanwhile");
    }
    assert_eq!(serializer.retired(b, next.run), Some(Release(a)));
    assert_eq!(serializer.retired(a, behind.run), None);
}

#[test]
fn second_queue_gets_the_agent_when_the_first_retired() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(on_b.gate, Gate::Wait, "an idle, unobstructed queue needs no announcement");
    assert_eq!(serializer.place(a, false, None, true).gate, Gate::Wait, "someone is ready: no extension");
    assert_eq!(serializer.retired(a, on_a.run), Some(Release(b)));
    assert_eq!(serializer.retired(b, on_b.run), Some(Release(a)));
}

// Queue A {barrier on S, kernel}, then queue B {kernel that completes S}: B must not wait for A.
#[test]
fn a_queue_behind_a_barrier_does_not_block_the_queue_that_lifts_it() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, true, None, true);
    assert_eq!(on_a.gate, Gate::AnnounceAndWait);
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(on_b.gate, Gate::None);
    assert_eq!(serializer.retired(b, on_b.run), None, "A is not ready");
    assert_eq!(serializer.announced(a, on_a.run), Some(Release(a)));
}

#[test]
fn an_application_barrier_ends_the_run() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let before = serializer.place(a, false, None, true);
    let behind = serializer.place(a, true, None, true);
    assert_eq!(behind.gate, Gate::AnnounceAndWait);
    assert_eq!(serializer.retired(a, before.run), None, "what lies behind the barrier is not ready");
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(on_b.gate, Gate::None);
    assert_eq!(serializer.announced(a, behind.run), None);
    assert_eq!(serializer.retired(b, on_b.run), Some(Release(a)));
}

#[test]
fn a_grant_that_must_be_returned_outlasts_retirement_and_takes_no_more_kernels() {
    let mut serializer = Serializer::default();
    let [a] = lanes(&mut serializer);
    let traced = serializer.place(a, false, None, true);
    serializer.expect_return(a, traced.run);
    let next = serializer.place(a, false, None, true);
    assert_eq!(next.gate, Gate::Wait);
    assert_eq!(serializer.retired(a, traced.run), None);
    assert_eq!(serializer.returned(a, traced.run), Some(Release(a)));
}

#[test]
fn a_grant_returned_early_reopens_the_run() {
    let mut serializer = Serializer::default();
    let [a] = lanes(&mut serializer);
    let first = serializer.place(a, false, None, true);
    serializer.expect_return(a, first.run);
    assert_eq!(serializer.returned(a, first.run), None, "its packets have not retired");
    assert_eq!(serializer.place(a, false, None, true), Place { run: first.run, gate: Gate::None });
}

#[test]
fn behind_a_returned_grant_the_next_gate_opens_early() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let first = serializer.place(a, false, None, true);
    let _ = serializer.place(a, false, None, true);
    serializer.expect_return(a, first.run);
    let second = serializer.place(a, false, None, true);
    assert_eq!(second.gate, Gate::Wait);
    assert!(serializer.somebody_waits());
    assert_eq!(serializer.returned(a, first.run), Some(Release(a)), "nothing of the run has retired");
    assert!(!serializer.somebody_waits());
    let on_b = serializer.place(b, false, None, true);
    let third = serializer.place(a, false, None, true);
    assert_eq!(third.gate, Gate::Wait, "somebody is ready");
    assert_eq!(serializer.retired(a, first.run), None);
    assert_eq!(serializer.retired(a, first.run), None);
    assert_eq!(serializer.retired(a, second.run), Some(Release(b)), "B came before A's third");
    assert_eq!(serializer.retired(b, on_b.run), Some(Release(a)));
    assert_eq!(serializer.retired(a, third.run), None);
    assert!(serializer.is_idle());
}

#[test]
fn the_gate_after_the_next_opens_when_the_next_was_passed() {
    let mut serializer = Serializer::default();
    let [a] = lanes(&mut serializer);
    let place = |serializer: &mut Serializer| {
        let place = serializer.place(a, false, None, true);
        let _ = serializer.place(a, false, None, true);
        serializer.expect_return(a, place.run);
        place.run
    };
    let [first, second, third] = std::array::from_fn(|_| place(&mut serializer));
    assert_eq!(serializer.returned(a, first), Some(Release(a)));
    assert_eq!(serializer.returned(a, second), None);
    assert_eq!(serializer.retired(a, first), None);
    assert_eq!(serializer.retired(a, first), None, "the queue goes on without a round trip");
    assert_eq!(serializer.retired(a, second), Some(Release(a)), "one of two: the gate before was passed");
    assert_eq!(serializer.returned(a, third), None);
}

#[test]
fn an_overrun_holder_takes_the_run_ahead_along() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let first = serializer.place(a, false, None, true);
    serializer.expect_return(a, first.run);
    let second = serializer.place(a, false, None, true);
    assert_eq!(serializer.returned(a, first.run), Some(Release(a)));
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(serializer.overrun(), Some(Release(b)));
    let third = serializer.place(a, false, None, true);
    assert_eq!(third.gate, Gate::Wait);
    assert_eq!(serializer.retired(b, on_b.run), None);
    assert_eq!(serializer.retired(a, first.run), None, "its second run is under way");
    assert!(serializer.is_accompanied(a, second.run));
    assert_eq!(serializer.retired(a, second.run), Some(Release(a)));
    assert_eq!(serializer.retired(a, third.run), None);
    assert!(serializer.is_idle());
}

#[test]
fn an_overrun_run_takes_no_more_kernels_when_its_grant_comes_back() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, false);
    let _ = serializer.place(a, false, None, false);
    serializer.expect_return(a, on_a.run);
    let _on_b = serializer.place(b, false, None, false);
    assert_eq!(serializer.overrun(), Some(Release(b)));
    assert_eq!(serializer.returned(a, on_a.run), None);
    let next = serializer.place(a, false, None, true);
    assert_eq!(next.gate, Gate::Wait, "B holds the agent");
    for _ in 0..1000 {
        assert_ne!(serializer.place(a, false, None, true).run, on_a.run);
    }
}

#[test]
fn grants_follow_the_order_of_enqueue_among_the_ready() {
    let mut serializer = Serializer::default();
    let [a, b, c] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    let on_b = serializer.place(b, true, None, true);
    let on_c = serializer.place(c, false, None, true);
    let next_a = serializer.place(a, false, None, true);
    assert_eq!(serializer.retired(a, on_a.run), Some(Release(c)), "B came first but is not ready");
    assert_eq!(serializer.announced(b, on_b.run), None);
    assert_eq!(serializer.retired(c, on_c.run), Some(Release(b)), "B came before A's second run");
    assert_eq!(serializer.retired(b, on_b.run), Some(Release(a)));
    assert_eq!(serializer.retired(a, next_a.run), None);
    assert!(serializer.is_idle());
}

#[test]
fn a_destroyed_holder_hands_the_agent_on_and_its_late_events_are_ignored() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(serializer.remove_lane(a), Some(Release(b)));
    assert_eq!(serializer.retired(a, on_a.run), None);
    let reused = serializer.add_lane();
    assert_eq!(reused, a);
    assert_eq!(serializer.retired(reused, on_a.run), None, "run ids are never reused");
    assert_eq!(serializer.retired(b, on_b.run), None);
    assert!(serializer.is_idle());
}

#[test]
fn work_from_before_serialization_holds_back_the_first_grant() {
    let mut serializer = Serializer::default();
    let [a] = lanes(&mut serializer);
    let from = serializer.hold();
    serializer.hold_again(from);
    assert_eq!(serializer.place(a, false, None, true).gate, Gate::Wait);
    assert_eq!(serializer.end_hold(from), None);
    assert_eq!(serializer.end_hold(from), Some(Release(a)));
}

// What has to end may stand behind their gates.
#[test]
fn a_hold_lets_earlier_runs_go_on() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    let on_b = serializer.place(b, false, None, true);
    let from = serializer.hold();
    let next_a = serializer.place(a, false, None, true);
    assert_eq!(next_a.gate, Gate::Wait, "the granted run takes nothing from behind the hold");
    assert_eq!(serializer.retired(a, on_a.run), Some(Release(b)));
    assert_eq!(serializer.retired(b, on_b.run), None, "held");
    assert_eq!(serializer.end_hold(from), Some(Release(a)));
    assert_eq!(serializer.retired(a, next_a.run), None);
    assert!(serializer.is_idle());
}

// What did not end in time may run beside all that is granted until it ends.
#[test]
fn a_hold_given_up_lets_runs_go_on_in_company_until_it_is_over() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let from = serializer.hold();
    serializer.hold_again(from);
    let on_a = serializer.place(a, false, None, true);
    assert_eq!(serializer.give_up_hold(from), None, "another hold of the same runs is left");
    assert_eq!(serializer.end_hold(from), Some(Release(a)));
    assert!(serializer.is_accompanied(a, on_a.run));
    assert_eq!(serializer.end_hold(from), None, "nobody waited for it any more");
    assert!(serializer.is_accompanied(a, on_a.run), "it was beside it for a time");
    let next_a = serializer.place(a, false, None, true);
    assert_ne!(next_a.run, on_a.run, "kernels from now on are alone");
    let _ = serializer.retired(a, on_a.run);
    assert!(!serializer.is_accompanied(a, next_a.run));
    assert_eq!(serializer.retired(a, next_a.run), None);
    let on_b = serializer.place(b, false, None, true);
    assert!(!serializer.is_accompanied(b, on_b.run));
}

#[test]
fn kernels_after_the_end_of_an_overrun_one_are_alone_again() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(serializer.overrun(), Some(Release(b)));
    assert_eq!(serializer.retired(a, on_a.run), None);
    let next_b = serializer.place(b, false, None, true);
    let _ = serializer.retired(b, on_b.run);
    assert!(!serializer.is_accompanied(b, next_b.run));
}

#[test]
fn an_overrun_run_lets_the_next_in_and_ends_like_any_other() {
    let mut serializer = Serializer::default();
    let [a, b] = lanes(&mut serializer);
    let on_a = serializer.place(a, false, None, true);
    assert_eq!(serializer.awaited(), None, "nobody waits");
    let on_b = serializer.place(b, false, None, true);
    assert_eq!(serializer.awaited(), Some(on_a.run));
    assert_eq!(serializer.overrun(), Some(Release(b)));
    let next_a = serializer.place(a, false, None, true);
    assert_eq!(next_a.gate, Gate::Wait, "behind its own overrun run");
    assert_eq!(serializer.retired(b, on_b.run), None, "A's next run waits for A's first");
    assert_eq!(serializer.retired(a, on_a.run), Some(Release(a)));
    assert_eq!(serializer.retired(a, next_a.run), None);
    assert!(serializer.is_idle());
}

/// A queue of the model below: what it has emitted, in order.
#[derive(Default)]
struct ModelQueue {
    packets: VecDeque<Packet>,
    gate_open: bool,
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Foreign { until_step: usize },
    Announce(RunId),
    Gate,
    Kernel { run: RunId, must_return: bool },
}

mod model {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Enqueue { queue: usize, must_return: bool, turn_is_over: bool },
        Foreign { queue: usize, delay: usize },
        Gpu { queue: usize },
        Return,
        ReturnEarly { queue: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3usize, any::<bool>(), any::<bool>()).prop_map(|(queue, must_return, turn_is_over)| {
                Step::Enqueue { queue, must_return, turn_is_over }
            }),
            1 => (0..3usize, 0..40usize).prop_map(|(queue, delay)| Step::Foreign { queue, delay }),
            12 => (0..3usize).prop_map(|queue| Step::Gpu { queue }),
            2 => Just(Step::Return),
            2 => (0..3usize).prop_map(|queue| Step::ReturnEarly { queue }),
        ]
    }

    /// Three queues, a GPU that executes any queue's next packet, and a subscriber that returns grants late.
    struct Model {
        serializer: Serializer,
        queues: [ModelQueue; 3],
        obstructed: [bool; 3],
        unreturned: VecDeque<(usize, RunId)>,
        running: Option<usize>,
        executed: usize,
        enqueued: usize,
        clock: usize,
    }

    impl Model {
        fn new() -> Self {
            let mut serializer = Serializer::default();
            let _: [Lane; 3] = lanes(&mut serializer);
            Self {
                serializer,
                queues: Default::default(),
                obstructed: [false; 3],
                unreturned: VecDeque::new(),
                running: None,
                executed: 0,
                enqueued: 0,
                clock: 0,
            }
        }

        fn enqueue(&mut self, queue: usize, must_return: bool, turn_is_over: bool) {
            let place = self.serializer.place(Lane(queue), self.obstructed[queue], None, turn_is_over);
            self.obstructed[queue] = false;
            if must_return {
                self.serializer.expect_return(Lane(queue), place.run);
            }
            let packets = &mut self.queues[queue].packets;
            if place.gate == Gate::AnnounceAndWait {
                packets.push_back(Packet::Announce(place.run));
            }
            if place.gate != Gate::None {
                packets.push_back(Packet::Gate);
            }
            packets.push_back(Packet::Kernel { run: place.run, must_return });
            self.enqueued += 1;
        }

        fn open(&mut self, release: Option<Release>) {
            if let Some(Release(lane)) = release {
                assert!(!self.queues[lane.0].gate_open, "a gate is opened once per grant");
                self.queues[lane.0].gate_open = true;
            }
        }

        /// Executes the next packet of a queue if it can run; says whether it could.
        fn gpu(&mut self, queue: usize) -> bool {
            self.clock += 1;
            let Some(&packet) = self.queues[queue].packets.front() else { return false };
            let lane = Lane(queue);
            let release = match packet {
                Packet::Foreign { until_step } if self.clock < until_step => return false,
                Packet::Foreign { .. } => None,
                Packet::Gate if !std::mem::take(&mut self.queues[queue].gate_open) => return false,
                Packet::Gate => None,
                Packet::Announce(run) => self.serializer.announced(lane, run),
                Packet::Kernel { run, must_return } => {
                    if self.running.is_none_or(|runs| runs != queue) {
                        self.start(queue);
                        return true;
                    }
                    self.running = None;
                    self.executed += 1;
                    if must_return {
                        self.unreturned.push_back((queue, run));
                    }
                    self.serializer.retired(lane, run)
                }
            };
            self.queues[queue].packets.pop_front();
            self.open(release);
            true
        }

        fn start(&mut self, queue: usize) {
            assert_eq!(self.running, None, "two kernels at once");
            let output = self.unreturned.front().map(|(owner, _)| *owner);
            assert_eq!(output, None, "output of an earlier kernel is not copied");
            self.running = Some(queue);
        }

        /// Returns the grant of a kernel that has yet to end.
        fn give_back_early(&mut self, queue: usize) {
            let early = self.queues[queue].packets.iter_mut().find_map(|packet| match packet {
                Packet::Kernel { run, must_return } => std::mem::take(must_return).then_some(*run),
                _ => None,
            });
            if let Some(run) = early {
                let release = self.serializer.returned(Lane(queue), run);
                self.open(release);
            }
        }

        fn give_back(&mut self) -> bool {
            let Some((queue, run)) = self.unreturned.pop_front() else { return false };
            let release = self.serializer.returned(Lane(queue), run);
            self.open(release);
            true
        }
    }

    proptest! {
        // Whatever the order of enqueues, executions and returns: no two queues hold the agent at once, and everything runs.
        #[test]
        fn every_kernel_runs_and_only_the_holder_runs(steps in proptest::collection::vec(step(), 1..200)) {
            let mut model = Model::new();
            for step in steps {
                match step {
                    Step::Enqueue { queue, must_return, turn_is_over } => {
                        model.enqueue(queue, must_return, turn_is_over);
                    }
                    Step::Foreign { queue, delay } => {
                        let until_step = model.clock + delay;
                        model.queues[queue].packets.push_back(Packet::Foreign { until_step });
                        model.obstructed[queue] = true;
                    }
                    Step::Gpu { queue } => {
                        model.gpu(queue);
                    }
                    Step::Return => {
                        model.give_back();
                    }
                    Step::ReturnEarly { queue } => model.give_back_early(queue),
                }
            }
            for _ in 0..100 {
                for queue in 0..3 {
                    while model.gpu(queue) {}
                }
                model.give_back();
            }
            while model.give_back() || (0..3).any(|queue| model.gpu(queue)) {}
            prop_assert_eq!(model.executed, model.enqueued);
            prop_assert!(model.serializer.is_idle());
        }
    }
}

#[test]
fn a_packet_that_retires_for_several_kernels_is_counted_once() {
    let mut serializer = Serializer::default();
    let [a] = lanes(&mut serializer);
    let first = serializer.place(a, false, None, true);
    assert_eq!(serializer.place(a, false, Some(first.run), true), first);
    assert_eq!(serializer.retired(a, first.run), None);
    assert!(serializer.is_idle());
}
