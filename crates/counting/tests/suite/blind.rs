//! A tool that comes late: the application has queues already, whose kernels nobody sees.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use wavescope_core::{ContextId, DispatchCounters, DispatchId, Outcome, Records};
use wavescope_counting::{Choice, DispatchCounting, PoolSize};
use wavescope_hsa_intercept::{KernelTracer, TracedKernel, Tracing};
use wavescope_on_rocr::{Gpus, Place, Profile, rerun};
use wavescope_workload::{Dependency, Launch, Queue};

use crate::rig::*;

const MACHINE: &str = "gfx942-x2";

/// Dispatches that were traced, with what the record says of the agent.
#[derive(Default)]
struct Traced(Mutex<BTreeMap<DispatchId, bool>>);

impl KernelTracer for Traced {
    fn enqueued(&self, _: &TracedKernel) {}

    fn completed(&self, kernel: &TracedKernel, _: Outcome) {
        let earlier = self.0.lock().unwrap().insert(kernel.dispatch.id, kernel.blind);
        assert_eq!(earlier, None, "{} completed twice", kernel.dispatch.id);
    }
}

/// Both GPUs are counted, and all kernels traced.
struct Measured<'a> {
    rig: &'a Rig,
    service: DispatchCounting,
    records: Records<DispatchCounters>,
    traced: Arc<Traced>,
}

/// What was measured of one kernel, besides its counters.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    gpu: usize,
    waves: u32,
    /// The record of counters is marked.
    unseen: bool,
    /// The record of the trace is marked.
    blind: bool,
}

impl<'a> Measured<'a> {
    fn start(rig: &'a Rig) -> Self {
        let traced = Arc::new(Traced::default());
        let tracer: Arc<dyn KernelTracer> = Arc::<Traced>::clone(&traced);
        rig.interceptor.trace(Tracing { context: ContextId(2), agents: Vec::new(), tracer }).unwrap();
        let configs = [0, 1].map(|gpu| rig.config(gpu, &["SQ_WAVES"], PoolSize::default()));
        let (service, records) = rig.counting(1, &[0, 1], move |dispatch| {
            let config = configs.iter().find(|config| config.agent() == dispatch.agent);
            Choice { config: config.cloned(), user_data: 0 }
        });
        service.start().unwrap();
        Self { rig, service, records, traced }
    }

    /// What was measured of the next kernels, in order of their ids, and no others.
    fn kernels<const COUNT: usize>(&self) -> [Kernel; COUNT] {
        let deadline = Instant::now() + LIMIT;
        let mut counted = BTreeMap::new();
        while counted.len() < COUNT || self.traced.0.lock().unwrap().len() < COUNT {
            counted.extend(self.records.try_recv().map(|counters| (counters.dispatch.id, counters)));
            assert!(Instant::now() < deadline, "{counted:?} of {COUNT}");
            std::thread::yield_now();
        }
        let traced = std::mem::take(&mut *self.traced.0.lock().unwrap());
        assert!(traced.keys().eq(counted.keys()), "{traced:?}");
        let kernels = counted.into_values().zip(traced.into_values());
        kernels.map(|(counters, blind)| self.kernel(&counters, blind)).collect::<Vec<_>>().try_into().unwrap()
    }

    fn kernel(&self, counters: &DispatchCounters, blind: bool) -> Kernel {
        let gpu = (0..2).find(|&gpu| self.rig.agent(gpu).id == counters.dispatch.agent).unwrap();
        let waves = counters.dispatch.grid[0] / 64;
        assert_eq!(total(counters, "SQ_WAVES"), f64::from(waves), "{counters:?}");
        Kernel { gpu, waves, unseen: counters.company.unseen, blind }
    }
}

/// Application queues that nobody intercepts, by GPU.
fn unseen(rig: &Rig) -> [u32; 2] {
    let queues = rig.interceptor.other_queues();
    [0, 1].map(|gpu| queues.iter().find(|queues| queues.agent == rig.agent(gpu).id).unwrap().unseen)
}

fn launch(rig: &Rig, gpu: usize, waves: u32) -> Launch {
    Launch::new(rig.kernel(gpu, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

fn run(rig: &Rig, queue: &Queue, gpu: usize, waves: u32) {
    queue.submit(&batch([launch(rig, gpu, waves)])).unwrap().wait(LIMIT).unwrap();
}

/// As [`run`]; `meanwhile` happens between submission and execution.
fn run_around(rig: &Rig, queue: &Queue, gpu: usize, waves: u32, meanwhile: impl FnOnce()) {
    let gate = rig.application.signal(1).unwrap();
    let mut gated = batch([]);
    gated.barrier(Dependency::All, &[&gate], None).launch(launch(rig, gpu, waves));
    let submitted = queue.submit(&gated).unwrap();
    meanwhile();
    gate.store(0).unwrap();
    submitted.wait(LIMIT).unwrap();
}

/// The first GPU has two queues from before, the other none.
fn check(ground: Ground, technique: Technique) {
    let early = |application: &wavescope_workload::Application| {
        [(); 2].map(|()| application.queue(&application.gpus()[0], 256).unwrap())
    };
    let ([first, second], rig) = ground.install_late(technique, early);
    let rig = &rig;
    let measured = Measured::start(rig);
    let new = [rig.queue(0), rig.queue(1)];
    assert_eq!(unseen(rig), [0, 0], "neither was used yet");
    let mark = |gpu, waves, marked| Kernel { gpu, waves, unseen: marked, blind: marked };
    run(rig, &new[0], 0, 1);
    assert_eq!(measured.kernels(), [mark(0, 1, false)]);

    // The first old queue shows itself while a kernel is on its way: the trace's record says how it was enqueued, the counters
    // that another kernel may have run beside it.
    run_around(rig, &new[0], 0, 2, || run(rig, &first, 0, 3));
    assert_eq!(unseen(rig), [1, 0]);
    assert_eq!(measured.kernels(), [Kernel { blind: false, ..mark(0, 2, true) }]);

    // Only the GPU with the old queues is blind.
    run(rig, &first, 0, 4);
    run(rig, &second, 0, 5);
    assert_eq!(unseen(rig), [2, 0], "each once");
    run(rig, &new[0], 0, 6);
    run(rig, &new[1], 1, 7);
    assert_eq!(measured.kernels(), [mark(0, 6, true), mark(1, 7, false)]);

    // It sees again when the last of them is gone.
    drop(first);
    assert_eq!(unseen(rig), [1, 0]);
    run(rig, &new[0], 0, 8);
    assert_eq!(measured.kernels(), [mark(0, 8, true)]);
    run_around(rig, &new[0], 0, 9, || drop(second));
    assert_eq!(unseen(rig), [0, 0]);
    assert_eq!(measured.kernels(), [mark(0, 9, true)], "the queue was there for a part of its time");
    run(rig, &new[0], 0, 10);
    run(rig, &new[1], 1, 11);
    assert_eq!(measured.kernels(), [mark(0, 10, false), mark(1, 11, false)]);

    measured.service.stop(LIMIT).unwrap();
    let summary = measured.service.summary();
    assert_eq!((summary.seen, summary.counted, summary.lost), (8, 8, 0), "nobody was asked about the others");
    assert!(measured.traced.0.lock().unwrap().is_empty(), "nor were they traced");
}

fn check_on_rocr(test: &str, technique: Technique) {
    let gpus: Gpus = MACHINE.parse().unwrap();
    if rerun(test, Profile::Libs, &gpus).unwrap() == Place::OnRuntime {
        check(Ground::on_rocr(&gpus), technique);
    }
}

// Field report G81: queues from before are named, and records of their agent marked as long as there is one.
mod agents_with_queues_from_before_the_tool_are_blind {
    use super::*;

    #[test]
    fn in_process_runtime() {
        check(Ground::in_process(preset(MACHINE)), Technique::Runtime);
    }

    #[test]
    fn in_process_doorbell() {
        check(Ground::in_process(preset(MACHINE)), Technique::Doorbell);
    }

    #[test]
    fn on_rocr_runtime() {
        let test = "blind::agents_with_queues_from_before_the_tool_are_blind::on_rocr_runtime";
        check_on_rocr(test, Technique::Runtime);
    }

    #[test]
    fn on_rocr_doorbell() {
        let test = "blind::agents_with_queues_from_before_the_tool_are_blind::on_rocr_doorbell";
        check_on_rocr(test, Technique::Doorbell);
    }
}
