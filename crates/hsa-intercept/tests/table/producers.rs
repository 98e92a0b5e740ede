//! Several threads feed one front: whose packets are whose, and who works for whom.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hsa_sys::hsa_queue_t;
use wavescope_core::{ContextId, Interception, Outcome, ThreadId};
use wavescope_hsa_intercept::{
    ApiCall, CorrelationIds, KernelTracer, Technique, TracedKernel, Tracing, push_external,
};

use crate::application::*;
use crate::runtime::Runtime;
use crate::service::*;

const CONTEXT: ContextId = ContextId(1);

fn this_thread() -> ThreadId {
    // SAFETY: the call takes no arguments.
    ThreadId(unsafe { libc::gettid() }.cast_unsigned())
}

fn at(address: usize) -> *mut hsa_queue_t {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Kernel, thread and ids of what was enqueued.
#[derive(Default)]
struct Log(Mutex<Vec<(u64, Option<ThreadId>, CorrelationIds)>>);

impl KernelTracer for Log {
    fn enqueued(&self, kernel: &TracedKernel) {
        let dispatch = &kernel.dispatch;
        self.0.lock().unwrap().push((dispatch.kernel_object, dispatch.thread, kernel.correlation));
    }

    fn completed(&self, _: &TracedKernel, _: Outcome) {}
}

// A thread rings while another is inside a callback and reads for it afterwards: the record names the thread that submitted,
// and of what that one was doing nothing is claimed.
#[test]
fn what_another_thread_reads_is_still_of_the_thread_that_submitted_it() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let step = Arc::new(AtomicUsize::new(0));
    let steps = Arc::clone(&step);
    let service = FakeService::new(move |dispatch| {
        if dispatch.kernel_object == 1 {
            steps.store(1, Ordering::Release);
            while steps.load(Ordering::Acquire) < 2 {
                std::thread::yield_now();
            }
        }
        Plan::Count
    });
    let log = Arc::new(Log::default());
    let tracer: Arc<dyn KernelTracer> = Arc::<Log>::clone(&log);
    interceptor.trace(Tracing { context: CONTEXT, agents: Vec::new(), tracer }).unwrap();
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    let address = queue.expose_provenance();
    let reader = std::thread::scope(|scope| {
        let shared = Shared(&runtime);
        let reader = scope.spawn(move || {
            push_external(CONTEXT, 71);
            let call = ApiCall::enter();
            shared.get().submit(at(address), &[kernel(1, 0)]);
            (this_thread(), call.id())
        });
        while step.load(Ordering::Acquire) < 1 {
            std::thread::yield_now();
        }
        push_external(CONTEXT, 72);
        let _call = ApiCall::enter();
        runtime.submit(queue, &[kernel(2, 0)]);
        step.store(2, Ordering::Release);
        reader.join().unwrap()
    });
    let own = ApiCall::enter();
    runtime.submit(queue, &[kernel(3, 0)]);
    runtime.run_until(|| service.retired() == 3);
    let log = std::mem::take(&mut *log.0.lock().unwrap());
    let ids = |internal, external| CorrelationIds { internal, external };
    assert_eq!(log[0], (1, Some(reader.0), ids(reader.1, 71)));
    assert_eq!((log[1].0, log[1].1, log[1].2.external), (2, Some(this_thread()), 0));
    assert!(log[1].2.internal > reader.1, "an id of its own: {log:?}");
    assert_eq!(log[2], (3, Some(this_thread()), ids(own.id(), 72)));
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Eight threads, any number of them inside at a time: no record names a wrong one.
#[test]
fn no_record_names_a_wrong_thread() {
    const PRODUCERS: u64 = 8;
    const EACH: u64 = 500;
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(256);
    let address = queue.expose_provenance();
    let threads: Vec<_> = std::thread::scope(|scope| {
        let produce = |producer: u64| {
            let shared = Shared(&runtime);
            scope.spawn(move || {
                for _ in 0..EACH {
                    let first = shared.get().reserve(at(address), 1);
                    while first - shared.get().read_index(at(address)) >= 256 {
                        std::thread::yield_now();
                    }
                    write(at(address), first, &kernel(producer, 0));
                    shared.get().store(doorbell(at(address)), first.cast_signed());
                }
                this_thread()
            })
        };
        let threads: Vec<_> = (0..PRODUCERS).map(produce).collect();
        runtime.run_until(|| service.retired() as u64 == PRODUCERS * EACH);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let dispatched = service.dispatched();
    let unknown = dispatched.iter().filter(|dispatch| dispatch.thread.is_none()).count();
    for dispatch in &dispatched {
        let right = threads[dispatch.kernel_object as usize];
        assert!(dispatch.thread.is_none_or(|thread| thread == right), "{dispatch:?} is of {right:?}");
    }
    assert!(unknown < dispatched.len() / 4, "{unknown} of {} are of nobody", dispatched.len());
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// A thread that subscribes writes the mark of a queue and reads what is there: that is not its own.
#[test]
fn a_subscribing_thread_is_not_taken_for_the_submitter() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let first = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(first.subscription(&[], false)).unwrap();
    let queue = runtime.queue(64);
    let address = queue.expose_provenance();
    // Rung for, but behind a slot that is not written yet.
    let gap = runtime.reserve(queue, 1);
    let submitter = std::thread::scope(|scope| {
        let shared = Shared(&runtime);
        scope
            .spawn(move || {
                shared.get().submit(at(address), &[kernel(2, 0)]);
                this_thread()
            })
            .join()
            .unwrap()
    });
    write(queue, gap, &kernel(1, 0));
    let second = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(second.subscription(&[], true)).unwrap();
    runtime.run_until(|| first.retired() == 2);
    let threads: Vec<_> = first.dispatched().iter().map(|dispatch| dispatch.thread).collect();
    assert_eq!(threads, [Some(this_thread()), Some(submitter)]);
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// For each packet that is read somebody submits another, without end as it seems: whoever rang reads its own and a chunk
// more, and our own thread the rest.
#[test]
fn no_thread_is_kept_by_what_others_submit() {
    const KERNELS: usize = 3000;
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let address = runtime.queue(4096).expose_provenance();
    let (asked, of_caller, caller) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), this_thread());
    let (all, own) = (Arc::clone(&asked), Arc::clone(&of_caller));
    let table = std::ptr::from_ref(&runtime).expose_provenance();
    let service = FakeService::new(move |_| {
        own.fetch_add(usize::from(this_thread() == caller), Ordering::Relaxed);
        if all.fetch_add(1, Ordering::Relaxed) + 1 < KERNELS {
            // SAFETY: the runtime outlives the test's dispatches.
            let runtime = unsafe { &*std::ptr::with_exposed_provenance::<Runtime>(table) };
            runtime.submit(at(address), &[kernel(1, 0)]);
        }
        Plan::Decline
    });
    interceptor.subscribe(service.subscription(&[], false)).unwrap();
    runtime.submit(at(address), &[kernel(1, 0)]);
    let read_by_caller = of_caller.load(Ordering::Relaxed);
    assert!(read_by_caller <= 257, "{read_by_caller} packets were read during one doorbell");
    runtime.run_until(|| ran(at(address)).len() == KERNELS);
    assert_eq!((asked.load(Ordering::Relaxed), of_caller.load(Ordering::Relaxed)), (KERNELS, read_by_caller));
    assert_eq!(runtime.destroy(at(address)), hsa_sys::HSA_STATUS_SUCCESS);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}
