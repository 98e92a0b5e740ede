//! Records of kernels that nobody measures, on whole runtimes.

use std::sync::{Arc, Mutex};

use wavescope_core::{ContextId, DispatchId, DispatchTimes, Interception, Outcome, SubscriptionId};
use wavescope_hsa_intercept::{KernelTracer, TracedKernel, Tracing};
use wavescope_workload::Launch;

use crate::packets::*;
use crate::rig::*;

#[derive(Default)]
pub(crate) struct Records {
    enqueued: Mutex<Vec<TracedKernel>>,
    completed: Mutex<Vec<(TracedKernel, Outcome)>>,
}

impl KernelTracer for Records {
    fn enqueued(&self, kernel: &TracedKernel) {
        self.enqueued.lock().unwrap().push(*kernel);
    }

    fn completed(&self, kernel: &TracedKernel, outcome: Outcome) {
        self.completed.lock().unwrap().push((*kernel, outcome));
    }
}

impl Records {
    pub(crate) fn start(rig: &Rig) -> (Arc<Self>, SubscriptionId) {
        Self::start_for(rig, 1)
    }

    /// For a context, whose external correlation ids count.
    pub(crate) fn start_for(rig: &Rig, context: u64) -> (Arc<Self>, SubscriptionId) {
        let records = Arc::new(Self::default());
        let tracer: Arc<dyn KernelTracer> = Arc::<Self>::clone(&records);
        let tracing = Tracing { context: ContextId(context), agents: Vec::new(), tracer };
        let id = rig.interceptor.trace(tracing).unwrap();
        (records, id)
    }

    /// What was enqueued, in this order.
    pub(crate) fn enqueued(&self) -> Vec<TracedKernel> {
        self.enqueued.lock().unwrap().clone()
    }

    /// What completed, by dispatch, each with its times.
    pub(crate) fn completed(&self) -> Vec<(TracedKernel, DispatchTimes)> {
        let mut completed: Vec<_> = self
            .completed
            .lock()
            .unwrap()
            .iter()
            .map(|(kernel, outcome)| match outcome {
                Outcome::Completed(times) => (*kernel, *times),
                Outcome::Lost(reason) => panic!("{} is lost: {reason:?}", kernel.dispatch.id),
            })
            .collect();
        completed.sort_by_key(|(kernel, _)| kernel.dispatch.id);
        completed
    }
}

pub(crate) fn stop(rig: &Rig, id: SubscriptionId) {
    rig.interceptor.quiesce(id).unwrap();
    rig.interceptor.drain(id, LIMIT).unwrap();
    rig.interceptor.unsubscribe(id).unwrap();
}

/// A thread's number as the kernel has it.
pub(crate) fn thread() -> u64 {
    // SAFETY: has no preconditions.
    u64::from(unsafe { libc::gettid() }.cast_unsigned())
}

fn launch(rig: &Rig, waves: u32) -> Launch {
    Launch::new(rig.kernel(0, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

on_both_faces! {
    /// Every kernel is enqueued and completes once, in the order of the queue, and ran when the application says it ran.
    fn records_say_what_who_and_when(rig on "gfx942") {
        const KERNELS: u32 = 100;
        let (records, id) = Records::start(rig);
        let queue = rig.queue(0);
        let launches = (1..=KERNELS).map(|waves| launch(rig, waves));
        let times = queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
        stop(rig, id);
        let (enqueued, completed) = (records.enqueued.lock().unwrap().clone(), records.completed());
        assert_eq!(enqueued.len(), KERNELS as usize);
        assert_eq!(completed.iter().map(|(kernel, _)| *kernel).collect::<Vec<_>>(), enqueued);
        for (index, (kernel, ran)) in completed.iter().enumerate() {
            let number = index as u64 + 1;
            assert_eq!(kernel.dispatch.id, DispatchId(number));
            assert_eq!(kernel.dispatch.grid, [64 * number as u32, 1, 1]);
            assert_eq!(kernel.dispatch.agent, rig.agent(0).id);
            assert_eq!(kernel.dispatch.thread.map(|thread| u64::from(thread.0)), Some(thread()));
            assert!(!kernel.serialized && !kernel.blind, "{kernel:?}");
            let told = times[index];
            assert_eq!((ran.start_ns, ran.end_ns), (told.start_ns.max(kernel.enqueued_ns), told.end_ns));
        }
        // After the end nobody hears anything.
        queue.submit(&batch([launch(rig, 1)])).unwrap().wait(LIMIT).unwrap();
        assert_eq!(records.enqueued.lock().unwrap().len(), KERNELS as usize);
    }
}

with_fronts! {
    /// Where a device submits, there is no thread that the record could name. (ROCr 7.2.4 itself does not hear when a device
    /// rings for its intercept queues: the signal block that devices see is a copy.)
    fn a_kernel_that_a_device_submits_has_no_thread(rig on "gfx942") {
        let (records, id) = Records::start(rig);
        let queue = rig.application.queue(rig.gpu(0), 64).unwrap();
        let done = rig.application.signal(1).unwrap();
        let index = device_reserve(&queue, 1);
        write(&queue, index, &packet(rig, 3, done.handle().handle));
        device_store(&queue, index.cast_signed());
        done.wait_below(1, LIMIT).unwrap();
        stop(rig, id);
        let (kernel, _) = records.completed()[0];
        assert_eq!((kernel.dispatch.thread, kernel.dispatch.grid[0]), (None, 3 * 64));
    }
}
