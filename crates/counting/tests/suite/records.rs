//! Who caused a kernel, as records say it: the thread, the API call in progress, the client's own ids.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};

use wavescope_core::ContextId;
use wavescope_counting::{Choice, PoolSize};
use wavescope_hsa_intercept::{ApiCall, TracedKernel, pop_external, push_external};
use wavescope_workload::{Launch, Queue};

use crate::packets::Shared;
use crate::rig::*;
use crate::tracing::{Records, stop, thread};

const THREADS: u32 = 4;
const EACH: u32 = 25;

fn submit(rig: &Rig, queue: &Queue, waves: &[u32]) {
    let launches =
        waves.iter().map(|waves| Launch::new(rig.kernel(0, "empty"), [64 * waves, 1, 1], [64, 1, 1]));
    queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
}

/// By the number of waves, which is different for each kernel.
fn by_waves(records: &Records) -> HashMap<u32, TracedKernel> {
    let completed = records.completed();
    let count = completed.len();
    let by: HashMap<_, _> =
        completed.into_iter().map(|(kernel, _)| (kernel.dispatch.grid[0] / 64, kernel)).collect();
    assert_eq!(by.len(), count, "each once");
    by
}

on_both_faces! {
    /// Threads submit at once, each to a queue of its own, and in turns to one queue; each record names the one that did. (Whoever
    /// rings for a queue may take along what another has written there, but not yet rung for.)
    fn records_name_the_thread_that_submitted(rig on "gfx942") {
        let (records, id) = Records::start(rig);
        let queue = Mutex::new(rig.queue(0));
        let together = Barrier::new(THREADS as usize);
        let threads: Vec<_> = std::thread::scope(|scope| {
            let submit_all = |number: u32| {
                let (rig, queue, together) = (Shared(rig), &queue, &together);
                scope.spawn(move || {
                    let own = rig.get().queue(0);
                    together.wait();
                    for n in 0..EACH {
                        submit(rig.get(), &own, &[1 + 2 * n * THREADS + number]);
                        submit(rig.get(), &queue.lock().unwrap(), &[1 + (2 * n + 1) * THREADS + number]);
                    }
                    thread()
                })
            };
            let running: Vec<_> = (0..THREADS).map(submit_all).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        stop(rig, id);
        let by_waves = by_waves(&records);
        assert_eq!(by_waves.len() as u32, 2 * THREADS * EACH);
        for (waves, kernel) in by_waves {
            let submitter = threads[((waves - 1) % THREADS) as usize];
            assert_eq!(kernel.dispatch.thread.map(|thread| u64::from(thread.0)), Some(submitter), "{kernel:?}");
        }
    }

    /// Kernels of one call have its id, those of no call each their own; the innermost call and the last id that was pushed
    /// count, for each context its own.
    fn records_have_the_ids_of_calls_and_of_the_client(rig on "gfx942") {
        const NONE: ContextId = ContextId(3);
        let (first, first_id) = Records::start_for(rig, 1);
        let (second, second_id) = Records::start_for(rig, 2);
        let queue = rig.queue(0);
        submit(rig, &queue, &[1, 2]);
        push_external(ContextId(1), 100);
        push_external(NONE, 999);
        let outer = ApiCall::enter();
        submit(rig, &queue, &[3, 4]);
        push_external(ContextId(1), 101);
        push_external(ContextId(2), 200);
        let inner = ApiCall::enter();
        submit(rig, &queue, &[5]);
        let inner_id = inner.id();
        drop(inner);
        assert_eq!(pop_external(ContextId(1)), Some(101));
        submit(rig, &queue, &[6]);
        // What this thread is at is nothing to another.
        std::thread::scope(|scope| {
            let (rig, queue) = (Shared(rig), &queue);
            scope.spawn(move || submit(rig.get(), queue, &[7]));
        });
        let outer_id = outer.id();
        drop(outer);
        for context in [ContextId(1), ContextId(2), NONE] {
            assert!(pop_external(context).is_some());
        }
        submit(rig, &queue, &[8]);
        stop(rig, first_id);
        stop(rig, second_id);

        let (one, two) = (by_waves(&first), by_waves(&second));
        let external = |by: &HashMap<u32, TracedKernel>| [1, 2, 3, 4, 5, 6, 7, 8].map(|waves| by[&waves].correlation.external);
        assert_eq!(external(&one), [0, 0, 100, 100, 101, 100, 0, 0]);
        assert_eq!(external(&two), [0, 0, 0, 0, 200, 200, 0, 0]);
        let internal = [1, 2, 3, 4, 5, 6, 7, 8].map(|waves| one[&waves].correlation.internal);
        assert_eq!(internal[2..6], [outer_id, outer_id, inner_id, outer_id]);
        let of_no_call = [internal[0], internal[1], internal[6], internal[7]];
        let known = [outer_id, inner_id];
        for (index, id) in of_no_call.iter().enumerate() {
            let is_alone = !known.contains(id) && !of_no_call[..index].contains(id);
            assert!(*id > 0 && is_alone, "{internal:?}");
        }
        // Both clients, and both records of a kernel, speak of the same dispatch.
        for (waves, kernel) in &one {
            let other = two[waves];
            assert_eq!((kernel.dispatch, kernel.correlation.internal), (other.dispatch, other.correlation.internal));
        }
        let enqueued: HashMap<_, _> = first.enqueued().iter().map(|kernel| (kernel.dispatch.grid[0] / 64, *kernel)).collect();
        assert_eq!(enqueued, one);
    }
    /// A callback submits, in the middle of a submission. With intercept queues the runtime then hands the kernel to interception
    /// on a thread of its own: whose it is, is unknown. A front stays with the thread.
    fn kernels_that_come_on_the_runtimes_thread_have_none(rig on "gfx942") {
        let submit_inside = Arc::new(OnceLock::<Box<dyn Fn() + Send + Sync>>::new());
        let (inside, asked) = (Arc::clone(&submit_inside), AtomicU64::new(0));
        let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
        let (counting, _counted) = rig.counting(2, &[0], move |_| {
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                inside.get().unwrap()();
            }
            Choice { config: Some(Arc::clone(&config)), user_data: 0 }
        });
        let (records, id) = Records::start(rig);
        counting.start().unwrap();
        let (outer, nested) = (rig.queue(0), rig.queue(0));
        let submission = Arc::new(Mutex::new(None));
        let into = Arc::clone(&submission);
        let kernel = batch([Launch::new(rig.kernel(0, "empty"), [5 * 64, 1, 1], [64, 1, 1])]);
        let nest = move || *into.lock().unwrap() = Some(nested.submit(&kernel).unwrap());
        assert!(submit_inside.set(Box::new(nest)).is_ok());
        submit(rig, &outer, &[3]);
        let nested = submission.lock().unwrap().take().unwrap();
        nested.wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        stop(rig, id);
        let by_waves = by_waves(&records);
        let thread_of = |waves| by_waves[&waves].dispatch.thread.map(|thread| u64::from(thread.0));
        assert_eq!(thread_of(3), Some(thread()));
        let is_front = rig.interceptor.technique() == Some(Technique::Doorbell);
        assert_eq!(thread_of(5), is_front.then(thread));
    }
}
