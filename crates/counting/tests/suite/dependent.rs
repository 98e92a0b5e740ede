//! Kernels of different queues that cannot end without each other.
//!
//! What a kernel does is not computed, so its program plays its part: behind the kernel, before its end, stands a packet that
//! waits for what another queue's kernel sets.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wavescope_core::{
    Answer, AqlPacket, Company, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, Fence, Grant,
    Interception, Outcome, PacketHeader, PacketType, ProgramSink, Service, Subscription, SubscriptionId,
    Token,
};
use wavescope_on_rocr::{Gpus, Place, Profile, rerun};
use wavescope_workload::Signal;

use crate::packets::{packet, packet_on, submit};
use crate::rig::*;
use crate::tracing::{self, Records};

const WATCHDOG: Duration = Duration::from_millis(100);
const MACHINE: &str = "gfx942";
/// As many GPUs as the driver in software has.
const GPUS: usize = 8;
const ROUNDS: usize = 20;

fn barrier(dependency: u64, completion: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::System, Fence::System));
    (packet.0[2], packet.0[3]) = (dependency as u32, (dependency >> 32) as u32);
    packet.set_completion_signal(completion);
    packet
}

/// Makes kernels that, having begun, count `begun` down, and do not end before `awaited` is 0: those of one wave.
struct Waits {
    begun: u64,
    awaited: u64,
    ended: Mutex<Vec<(u32, Company)>>,
}

impl Waits {
    fn new(begun: Option<&Signal>, awaited: &Signal) -> Arc<Self> {
        let begun = begun.map_or(0, |signal| signal.handle().handle);
        Arc::new(Self { begun, awaited: awaited.handle().handle, ended: Mutex::default() })
    }

    fn subscribe(self: &Arc<Self>, rig: &Rig) -> SubscriptionId {
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Self>::clone(self);
        let (context, service, agents) = (ContextId(1), Service::DispatchCounting, Vec::new());
        let subscription = Subscription { context, service, agents, serialize: true, subscriber };
        rig.interceptor.subscribe(subscription).unwrap()
    }

    /// What ended, by waves, and what may have run beside it.
    fn ended(&self) -> Vec<(u32, Company)> {
        let mut ended = self.ended.lock().unwrap().clone();
        ended.sort_unstable_by_key(|(waves, _)| *waves);
        ended
    }
}

impl DispatchSubscriber for Waits {
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let waves = dispatch.grid[0] / 64;
        if waves == 1 {
            if self.begun != 0 {
                sink.before(&barrier(0, self.begun));
            }
            sink.after(&barrier(self.awaited, 0));
        }
        Answer::Instrument { token: Token { index: waves, generation: 0 }, grant: Grant::UntilRetired }
    }

    fn publish(&self, event: DispatchEvent) {
        if let DispatchEvent::Retired { token, outcome, company, .. } = event {
            assert!(matches!(outcome, Outcome::Completed(_)), "{outcome:?}");
            self.ended.lock().unwrap().push((token.index, company));
        }
    }
}

fn stop(rig: &Rig, id: SubscriptionId) {
    rig.interceptor.quiesce(id).unwrap();
    rig.interceptor.drain(id, LIMIT).unwrap();
    rig.interceptor.unsubscribe(id).unwrap();
}

// The kernel of queue A spins on what the kernel of queue B sets, and they run one at a time: after a while B is let in beside
// A, and the records of both say so. Those of the kernels behind them do not.
fn a_kernel_that_spins_on_another_queues_kernel(rig: &Rig) {
    let (set, done) = (rig.application.signal(1).unwrap(), rig.application.signal(1).unwrap());
    let waits = Waits::new(None, &set);
    let (records, tracing) = Records::start(rig);
    let id = waits.subscribe(rig);
    let [a, b] = [rig.queue(0), rig.queue(0)];
    let started = Instant::now();
    submit(rig, &a, &[packet(rig, 1, done.handle().handle)]);
    submit(rig, &b, &[packet(rig, 2, set.handle().handle)]);
    set.wait_below(1, LIMIT).unwrap();
    assert!(started.elapsed() >= WATCHDOG, "B was let in after {:?}", started.elapsed());
    // The application's own signal does not wait for the program.
    done.wait_below(1, LIMIT).unwrap();
    rig.interceptor.drain(id, LIMIT).unwrap();
    let overrun = Company { overrun: true, unseen: false };
    assert_eq!(waits.ended(), [(1, overrun), (2, overrun)]);
    for (queue, waves) in [(&a, 3), (&b, 4), (&a, 5)] {
        done.store(1).unwrap();
        submit(rig, queue, &[packet(rig, waves, done.handle().handle)]);
        done.wait_below(1, LIMIT).unwrap();
    }
    stop(rig, id);
    assert_eq!(waits.ended()[2..], [3, 4, 5].map(|waves| (waves, Company::default())), "in order again");
    tracing::stop(rig, tracing);
    let traced =
        records.completed().into_iter().map(|(kernel, _)| (kernel.dispatch.grid[0] / 64, kernel.serialized));
    let serialized = [(1, false), (2, false), (3, true), (4, true), (5, true)];
    assert_eq!(traced.collect::<Vec<_>>(), serialized);
}

// Field report G02: a collective, whose kernels end only when all of them have begun, one on each GPU. No GPU's kernel may wait
// for another's end, and nobody needs more threads than there are.
fn a_collective_over_all_gpus(rig: &Rig, gpus: usize) {
    for round in 0..ROUNDS {
        let signal = |value: usize| rig.application.signal(value as i64).unwrap();
        let (begun, ended) = (signal(gpus), signal(gpus));
        let waits = Waits::new(Some(&begun), &begun);
        let id = waits.subscribe(rig);
        let queues: Vec<_> = (0..gpus).map(|gpu| rig.queue(gpu)).collect();
        for (gpu, queue) in queues.iter().enumerate() {
            submit(rig, queue, &[packet_on(rig, gpu, 1, ended.handle().handle)]);
            // The last one makes them go.
            if gpu + 1 < gpus {
                let still = waits.ended();
                assert!(still.is_empty(), "round {round}: {still:?} ended before all have begun");
            }
        }
        ended.wait_below(1, LIMIT).unwrap();
        stop(rig, id);
        assert_eq!(waits.ended(), vec![(1, Company::default()); gpus], "round {round}");
        assert_eq!(begun.load().unwrap(), 0);
    }
}

// What queue A got before measuring began is not over: after a while B's kernel is let in beside it, and its record says so.
// Those of kernels after the end of that do not.
fn a_kernel_from_before_that_does_not_end(rig: &Rig) {
    let (blocked, done) = (rig.application.signal(1).unwrap(), rig.application.signal(1).unwrap());
    let [a, b] = [rig.queue(0), rig.queue(0)];
    submit(rig, &a, &[barrier(blocked.handle().handle, 0), packet(rig, 1, 0)]);
    let waits = Waits::new(None, &blocked);
    let id = waits.subscribe(rig);
    submit(rig, &b, &[packet(rig, 2, done.handle().handle)]);
    done.wait_below(1, LIMIT).unwrap();
    rig.interceptor.drain(id, LIMIT).unwrap();
    let overrun = Company { overrun: true, unseen: false };
    assert_eq!(waits.ended(), [(2, overrun)]);
    blocked.store(0).unwrap();
    let started = Instant::now();
    for waves in 3.. {
        done.store(1).unwrap();
        submit(rig, &b, &[packet(rig, waves, done.handle().handle)]);
        done.wait_below(1, LIMIT).unwrap();
        rig.interceptor.drain(id, LIMIT).unwrap();
        let (_, company) = *waits.ended().last().unwrap();
        if company == Company::default() {
            break;
        }
        assert!(started.elapsed() < LIMIT, "nobody is alone again");
    }
    stop(rig, id);
}

fn options(technique: Technique) -> Options {
    Options { technique: Some(technique), watchdog: WATCHDOG, ..Options::default() }
}

/// Tests on both faces, each with these techniques, of which the last words of the test's name tell.
macro_rules! with_a_short_watchdog {
    ($($name:ident: $check:ident($($in_process:ident $on_rocr:ident $technique:ident),+);)*) => { $(
        mod $name {
            use super::*;
            $(
                #[test]
                fn $in_process() {
                    $check(&Ground::in_process(preset(MACHINE)).install_with(options(Technique::$technique)));
                }

                #[test]
                fn $on_rocr() {
                    let test = concat!("dependent::", stringify!($name), "::", stringify!($on_rocr));
                    let gpus: Gpus = MACHINE.parse().unwrap();
                    if rerun(test, Profile::Libs, &gpus).unwrap() == Place::OnRuntime {
                        $check(&Ground::on_rocr(&gpus).install_with(options(Technique::$technique)));
                    }
                }
            )+
        }
    )* };
}

with_a_short_watchdog! {
    the_watchdog_lets_the_other_queue_in: a_kernel_that_spins_on_another_queues_kernel(
        in_process_runtime on_rocr_runtime Runtime, in_process_doorbell on_rocr_doorbell Doorbell
    );
    what_is_let_in_beside_kernels_from_before_says_so: a_kernel_from_before_that_does_not_end(
        in_process_doorbell on_rocr_doorbell Doorbell
    );
}

on_both_faces! {
    fn a_collective_over_many_gpus_ends(rig on "gfx942-x8") {
        for gpus in 1..=GPUS {
            a_collective_over_all_gpus(rig, gpus);
        }
    }
}
