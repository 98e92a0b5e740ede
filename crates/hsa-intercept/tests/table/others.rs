//! Queues that are not ours: the runtime's own, and those of the application that nobody sees.

use std::sync::Arc;
use std::time::Duration;

use hsa_sys::{HSA_STATUS_SUCCESS, hsa_queue_t};
use wavescope_core::{AgentId, ContextId, Interception, Outcome};
use wavescope_hsa_intercept::{
    Interceptor, KernelTracer, Options, OtherQueues, Technique, TracedKernel, Tracing,
};

use crate::application::*;
use crate::runtime::{CPU, Runtime, gpu, new_queue, new_table, state};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

fn counts(interceptor: &Interceptor) -> Vec<(u32, u32)> {
    let list = interceptor.other_queues();
    assert!(list.iter().enumerate().all(|(index, queues)| queues.agent == AgentId(index as u32)));
    list.iter().map(|OtherQueues { unseen, internal, .. }| (*unseen, *internal)).collect()
}

#[derive(Default)]
struct Blind(std::sync::Mutex<Vec<bool>>);

impl KernelTracer for Blind {
    fn enqueued(&self, kernel: &TracedKernel) {
        self.0.lock().unwrap().push(kernel.blind);
    }

    fn completed(&self, _: &TracedKernel, _: Outcome) {}
}

// The table comes late: an agent on which the application has a queue already is blind from that queue's next use to its
// end, and records say so.
#[test]
fn a_queue_that_was_there_before_makes_its_agent_blind() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let old = runtime.queue(64);
        let options = Options { technique: Some(technique), late: true, ..Options::default() };
        let interceptor = runtime.install_with(options);
        let tracer = Arc::new(Blind::default());
        let told: Arc<dyn KernelTracer> = Arc::<Blind>::clone(&tracer);
        let tracing = Tracing { context: ContextId(1), agents: Vec::new(), tracer: told };
        let id = interceptor.trace(tracing).unwrap();
        let new = runtime.queue(64);
        runtime.submit(new, &[kernel(1, 0)]);
        assert_eq!(counts(&interceptor), [(0, 0), (0, 0)], "nothing seen of it yet");
        runtime.submit(old, &[kernel(2, 0)]);
        runtime.submit(old, &[kernel(3, 0)]);
        assert_eq!(counts(&interceptor), [(1, 0), (0, 0)], "once, and on its own agent");
        let service = FakeService::new(|_| Plan::Count);
        let counting = interceptor.subscribe(service.subscription(&[], true)).unwrap();
        runtime.submit(new, &[kernel(4, 0)]);
        runtime.run_until(|| ran(old) == [2, 3] && ran(new) == [1, 4]);
        assert_eq!(runtime.destroy(old), HSA_STATUS_SUCCESS);
        assert_eq!(counts(&interceptor), [(0, 0), (0, 0)]);
        runtime.submit(new, &[kernel(5, 0)]);
        runtime.run_until(|| ran(new).len() == 3);
        interceptor.drain(counting, LIMIT).unwrap();
        assert_eq!(*tracer.0.lock().unwrap(), [false, true, false]);
        let seen = service.companies();
        assert_eq!(
            seen.iter().map(|seen| seen.unseen).collect::<Vec<_>>(),
            [true, false],
            "measured kernels"
        );
        interceptor.unsubscribe(id).unwrap();
        assert_eq!(runtime.destroy(new), HSA_STATUS_SUCCESS);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// The runtime's own queues never come through the table. It announces them, and they blind nobody.
#[test]
fn queues_of_the_runtime_are_counted_apart() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let notifier = state().notifier.lock().unwrap().expect("a listener");
    let data = std::ptr::with_exposed_provenance_mut(notifier.1);
    for agent in [gpu(1), gpu(1), CPU] {
        let queue = new_queue(agent, 64, None, std::ptr::null_mut(), false).unwrap();
        // SAFETY: the listener and its data.
        unsafe { notifier.0.unwrap()(queue, agent, data) };
    }
    assert_eq!(counts(&interceptor), [(0, 0), (0, 2)]);
    interceptor.shut_down().unwrap();
}

#[test]
fn queues_of_agents_that_are_no_gpus_are_passed_through() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let queue = runtime.try_queue(CPU, 64, None, std::ptr::null_mut()).unwrap();
        let mut soft: *mut hsa_queue_t = std::ptr::null_mut();
        let create = runtime.core().hsa_soft_queue_create_fn.unwrap();
        let region = hsa_sys::hsa_region_t { handle: 0 };
        // SAFETY: the arguments are in order.
        let status = unsafe { create(region, 64, 0, 0, hsa_sys::hsa_signal_t { handle: 0 }, &raw mut soft) };
        assert_eq!(status, HSA_STATUS_SUCCESS);
        interceptor.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], true)).unwrap();
        for queue in [queue, soft] {
            assert!(std::ptr::eq(crate::runtime::object(queue).pointer(), queue), "the runtime's own");
            runtime.submit(queue, &[kernel(1, 0)]);
            runtime.run_until(|| ran(queue) == [1]);
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        }
        assert_eq!(counts(&interceptor), [(0, 0), (0, 0)], "they blind no GPU");
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// Another tool makes an intercept queue for the application: nobody of ours sees its packets, and that is said.
#[test]
fn an_intercept_queue_of_another_tool_makes_its_agent_blind() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let mut queue = std::ptr::null_mut();
        let create = runtime.amd().hsa_amd_queue_intercept_create_fn.unwrap();
        let none = std::ptr::null_mut();
        // SAFETY: the arguments are in order.
        let status = unsafe { create(gpu(1), 64, 0, None, none, u32::MAX, u32::MAX, &raw mut queue) };
        assert_eq!(
            (status, counts(&interceptor)),
            (HSA_STATUS_SUCCESS, vec![(0, 0), (1, 0)]),
            "{technique:?}"
        );
        runtime.submit(queue, &[kernel(1, 0)]);
        runtime.run_until(|| ran(queue) == [1]);
        let seen = runtime.queue(64);
        assert_eq!(counts(&interceptor), [(0, 0), (1, 0)], "our own are not met");
        assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        assert_eq!(counts(&interceptor), [(0, 0), (0, 0)]);
        runtime.destroy(seen);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// A queue is met through the entries of one interceptor and destroyed through those of another.
#[test]
fn each_interceptor_counts_a_queue_once_and_forgets_it() {
    for technique in TECHNIQUES {
        let mut runtime = Runtime::start();
        let (old, older) = (runtime.queue(64), runtime.queue(64));
        let options = || Options { technique: Some(technique), late: true, ..Options::default() };
        let first = runtime.install_with(options());
        let tracer = Arc::new(Blind::default());
        let told: Arc<dyn KernelTracer> = Arc::<Blind>::clone(&tracer);
        first.trace(Tracing { context: ContextId(1), agents: Vec::new(), tracer: told }).unwrap();
        let seen = runtime.queue(64);
        runtime.submit(old, &[kernel(1, 0)]);
        assert_eq!(counts(&first), [(1, 0), (0, 0)]);
        runtime.table = new_table();
        let second = runtime.install_with(options());
        assert!(!Arc::ptr_eq(&first, &second));
        for queue in [old, older] {
            runtime.submit(queue, &[kernel(2, 0)]);
        }
        runtime.submit(seen, &[kernel(3, 0)]);
        let both = || [counts(&first), counts(&second)];
        assert_eq!(both(), [[(2, 0), (0, 0)], [(2, 0), (0, 0)]], "{technique:?}");
        assert_eq!(runtime.destroy(old), HSA_STATUS_SUCCESS);
        assert_eq!(both(), [[(1, 0), (0, 0)], [(1, 0), (0, 0)]], "{technique:?}");
        runtime.submit(seen, &[kernel(4, 0)]);
        assert_eq!(runtime.destroy(older), HSA_STATUS_SUCCESS);
        assert_eq!(both(), [[(0, 0), (0, 0)], [(0, 0), (0, 0)]], "{technique:?}");
        runtime.submit(seen, &[kernel(5, 0)]);
        assert_eq!(*tracer.0.lock().unwrap(), [true, true, false], "{technique:?}");
        runtime.run_until(|| ran(seen).len() == 3);
        assert_eq!(runtime.destroy(seen), HSA_STATUS_SUCCESS);
        [first, second].iter().for_each(|interceptor| interceptor.shut_down().unwrap());
        runtime.assert_clean();
    }
}
