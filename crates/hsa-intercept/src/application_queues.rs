//! The application's queues by their addresses, whichever technique made them.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use hsa_sys::{
    HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_QUEUE, HSA_STATUS_SUCCESS, hsa_queue_t,
    hsa_status_t,
};
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_hsa::Hsa;

use crate::Error;
use crate::blind::Others;
use crate::device::{Device, SignalKind};
use crate::engine::{Engine, QueueHandle};
use crate::front::registry::{Ending, Registry};
use crate::front::{Block, Closed, Front, HardwareQueue, LastAct, SILENT, SharedFront, Worker, entries};
use crate::hsa_device::HsaDevice;
use crate::late_end::LateEnds;
use crate::reaper::LastLook;
use crate::runtime_queue::{self, Creation, RuntimeQueue};
use crate::runtime_thread::Recognition;
use crate::technique::Technique;

/// Between two looks at what others read.
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// Makes, finds and destroys intercepted queues.
pub(crate) struct ApplicationQueues {
    hsa: Hsa,
    device: Arc<HsaDevice>,
    engine: Arc<Engine>,
    /// `None` if queues are not intercepted.
    technique: Option<Technique>,
    /// Of the technique `runtime`.
    runtime: Mutex<HashMap<usize, Arc<RuntimeQueue>>>,
    late_ends: Arc<LateEnds>,
    event_thread: Recognition,
    /// Of the technique `doorbell`, with those of other interceptors.
    fronts: &'static Registry,
    worker: Arc<Worker>,
}

/// A queue that is intercepted.
pub(crate) struct Known {
    pub(crate) handle: QueueHandle,
    /// What the runtime calls it.
    pub(crate) runtimes: *mut hsa_queue_t,
}

/// The runtime of a queue is gone.
pub(crate) struct Over;

/// What an application got.
pub(crate) enum Made {
    /// A queue that is intercepted.
    Intercepted,
    /// One that is not: we lacked something.
    Plain(*mut hsa_queue_t),
}

impl ApplicationQueues {
    pub(crate) fn new(
        hsa: &Hsa,
        device: &Arc<HsaDevice>,
        engine: &Arc<Engine>,
        technique: Option<Technique>,
    ) -> Self {
        let fronts = Registry::of_process();
        Self {
            hsa: hsa.clone(),
            device: Arc::clone(device),
            engine: Arc::clone(engine),
            technique,
            runtime: Mutex::new(HashMap::new()),
            late_ends: Arc::default(),
            event_thread: Recognition::default(),
            worker: Worker::new(Arc::<HsaDevice>::clone(device), fronts),
            fronts,
        }
    }

    pub(crate) fn technique(&self) -> Option<Technique> {
        self.technique
    }

    /// Makes the entries that answer for queues look for them here.
    pub(crate) fn lead_entries_here(&self, others: &'static Others) {
        self.fronts.bury();
        if self.technique.is_some() {
            entries::lead_to(self.hsa.table().clone(), self.fronts, others);
        }
    }

    /// Whether one of them has this address.
    pub(crate) fn have(&self, queue: *const hsa_queue_t) -> bool {
        let front = self.fronts.by_queue(queue.addr());
        front.is_some_and(|front| self.worker.serves(&front))
            || self.runtime.lock().contains_key(&queue.addr())
    }

    /// The queue that has this address, if it is one of them.
    ///
    /// # Errors
    /// [`Over`] if its runtime is gone.
    pub(crate) fn find(&self, queue: *const hsa_queue_t) -> Result<Option<Known>, Over> {
        if let Some(front) = self.fronts.by_queue(queue.addr()) {
            let (handle, runtimes) = (front.handle().clone(), front.hardware().pointer().as_ptr());
            return if front.is_over() { Err(Over) } else { Ok(Some(Known { handle, runtimes })) };
        }
        let runtime = self.runtime.lock();
        let record = runtime.get(&queue.addr());
        Ok(record.map(|record| Known { handle: record.handle().clone(), runtimes: record.pointer() }))
    }

    /// Ends the worker, and what is kept of its fronts, if none is left. Returns whether that is so and no queue has yet to end.
    ///
    /// # Errors
    /// [`Error::ThreadBusy`].
    pub(crate) fn end_if_no_fronts(&self, deadline: Deadline) -> Result<bool, Error> {
        let all_ended = self.late_ends.wait(deadline);
        let is_idle = self.worker.stop_if_idle(deadline)?;
        if is_idle {
            self.fronts.forget(&self.worker, deadline);
        }
        Ok(is_idle && all_ended)
    }

    /// Waits for queues that end after their callback.
    pub(crate) fn wait_for_late_ends(&self, deadline: Deadline) {
        if !self.late_ends.wait(deadline) {
            tracing::warn!("the runtime may go down before queues whose callbacks do not return");
        }
    }

    /// Frees what is kept of queues that are gone, if none is left. Returns whether that is so.
    pub(crate) fn let_go(&self, deadline: Deadline) -> bool {
        let none_left = self.late_ends.wait(deadline)
            && !self.fronts.fronts().iter().any(|front| self.worker.serves(front))
            && self.runtime.lock().is_empty();
        if none_left {
            self.fronts.forget(&self.worker, deadline);
            self.event_thread.let_go(&self.hsa);
        }
        none_left
    }

    /// Makes a queue as the application asked for it, with `handle` for its packets.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    ///
    /// # Errors
    /// The runtime's status, unchanged; nothing is left behind.
    pub(crate) unsafe fn create(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
        queue: *mut *mut hsa_queue_t,
    ) -> Result<Made, hsa_status_t> {
        let mut queue = NonNull::new(queue).ok_or(HSA_STATUS_ERROR_INVALID_ARGUMENT)?;
        let made = match self.technique {
            // SAFETY: by this function's contract.
            Some(Technique::Doorbell) => unsafe { self.create_front(creation, handle) }?,
            // SAFETY: likewise.
            _ => Some(unsafe { self.create_runtime_queue(creation, handle) }?),
        };
        let (pointer, made) = match made {
            Some(pointer) => (pointer, Made::Intercepted),
            None => {
                let mut plain = std::ptr::null_mut();
                // SAFETY: by this function's contract.
                match unsafe { creation.plain(&self.hsa, &raw mut plain) } {
                    HSA_STATUS_SUCCESS => (plain, Made::Plain(plain)),
                    status => return Err(status),
                }
            }
        };
        // SAFETY: the application's result, by this function's contract.
        *unsafe { queue.as_mut() } = pointer;
        Ok(made)
    }

    /// Waits until whoever measures was asked about everything that was submitted to fronts before; `false` if that was not so
    /// at the `deadline`.
    pub(crate) fn wait_asked(&self, deadline: Deadline) -> bool {
        let mut behind: Vec<_> =
            self.fronts.fronts().into_iter().map(|front| (front.submitted(), front)).collect();
        loop {
            behind.retain(|(index, front)| self.worker.serves(front) && !front.has_rewritten(*index));
            if behind.is_empty() || deadline.is_over() {
                return behind.is_empty();
            }
            self.worker.wake();
            std::thread::park_timeout(BETWEEN_LOOKS.min(deadline.left()));
        }
    }

    /// Keeps everybody from reading fronts, until [`go_on`](Self::go_on). Returns those that are held; one whose reader does
    /// not leave in time is not.
    pub(crate) fn hold(&self, deadline: Deadline) -> Vec<SharedFront> {
        let (mut free, mut held) = (self.fronts.fronts(), Vec::new());
        loop {
            // All at once: a reader that stays does not make the others' wait longer.
            free.retain(|front| self.worker.serves(front) && front.may_be_held());
            held.extend(free.extract_if(.., |front| front.hold()));
            if free.is_empty() || deadline.is_over() {
                return held;
            }
            std::thread::park_timeout(BETWEEN_LOOKS.min(deadline.left()));
        }
    }

    /// Fronts that were held may be read again.
    pub(crate) fn go_on(&self, held: Vec<SharedFront>) {
        held.iter().for_each(|front| front.go_on());
    }

    /// The runtime is gone, and with it every queue. Nothing of them is touched from here on.
    pub(crate) fn runtime_gone(&self) {
        for front in self.fronts.runtime_gone(&self.worker) {
            front.set_over();
            self.engine.queue_destroyed(front.handle());
        }
        for (_, record) in std::mem::take(&mut *self.runtime.lock()) {
            self.engine.queue_destroyed(record.handle());
            // Somebody may be inside its hook.
            std::mem::forget(record);
        }
        self.worker.end();
    }

    /// Destroys a queue, ours or not; waits at most until `deadline` for what is in flight on one of ours. Returns the
    /// runtime's answer.
    ///
    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn destroy(&self, queue: *mut hsa_queue_t, deadline: Deadline) -> hsa_status_t {
        match self.fronts.begin_end(queue.addr()) {
            Ending::Yours(front) => return self.destroy_front(&front, deadline),
            Ending::Already => return HSA_STATUS_ERROR_INVALID_QUEUE,
            Ending::NoFront => {}
        }
        let ours = self.runtime.lock().remove(&queue.addr());
        match ours {
            Some(record) => self.destroy_intercept_queue(record, deadline),
            // SAFETY: by this function's contract.
            None => unsafe { runtime_queue::destroy(&self.hsa, queue) },
        }
    }

    fn destroy_intercept_queue(&self, record: Arc<RuntimeQueue>, deadline: Deadline) -> hsa_status_t {
        wait_empty(record.handle(), deadline);
        if !record.close(deadline) {
            self.late_ends.end(&self.device, &self.engine, record);
            return HSA_STATUS_SUCCESS;
        }
        // SAFETY: the application's queue; its record, which hook and callback use, outlives the call.
        let status = unsafe { runtime_queue::destroy(&self.hsa, record.pointer()) };
        if status == HSA_STATUS_SUCCESS {
            self.engine.queue_destroyed(record.handle());
        } else {
            record.reopen();
            self.runtime.lock().insert(record.address(), record);
        }
        status
    }

    /// The front is found and goes on until nothing of ours is in flight: what did not fit the hardware ring so far has to
    /// go there first.
    fn destroy_front(&self, front: &SharedFront, deadline: Deadline) -> hsa_status_t {
        self.worker.wake();
        wait_empty(front.handle(), deadline);
        self.fronts.remove(front);
        // The worker lets go of it.
        self.worker.wake();
        match front.close(deadline, |closed| self.last_act(front, closed)) {
            Closed::Idle => {
                let status = front.hardware().destroy();
                self.engine.queue_destroyed(front.handle());
                status
            }
            Closed::Inside => front.hardware().destroy(),
            Closed::LeftToReader => HSA_STATUS_SUCCESS,
        }
    }

    /// What the reader of a closed front does when it leaves. As long as it is inside the engine, that keeps the queue.
    fn last_act(&self, front: &Front, closed: Closed) -> LastAct {
        let engine = Arc::clone(&self.engine);
        if closed == Closed::LeftToReader {
            tracing::warn!(queue = %front.handle().id(), "destroyed when a callback of another thread returns");
            // Until then it is stopped, what is in flight is lost, and the application hears no more of it.
            front.hardware().silence();
            front.hardware().inactivate();
            front.handle().failed();
        }
        Box::new(move |front| {
            if closed == Closed::LeftToReader {
                let status = front.hardware().destroy();
                tracing::debug!(?status, queue = %front.handle().id(), "destroyed after a callback");
            }
            engine.queue_destroyed(front.handle());
        })
    }

    /// # Safety
    /// As for [`create`](Self::create).
    unsafe fn create_runtime_queue(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        self.event_thread.begin(&self.hsa);
        // SAFETY: by this function's contract.
        let created = unsafe { RuntimeQueue::create(&self.hsa, creation, handle.clone()) }?;
        let pointer = created.pointer();
        self.runtime.lock().insert(created.address(), created);
        Ok(pointer)
    }

    /// Creates a front. `None` where only we lack something for it.
    ///
    /// # Safety
    /// As for [`create`](Self::create).
    unsafe fn create_front(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<Option<*mut hsa_queue_t>, hsa_status_t> {
        // SAFETY: by this function's contract.
        let hardware = unsafe { HardwareQueue::create(&self.hsa, creation, handle) }?;
        let front = self.front_around(hardware, creation.size, handle);
        let front = front.inspect_err(|error| {
            tracing::error!(%error, queue = %handle.id(), "a queue is not intercepted");
        });
        Ok(front.ok().map(|front| front.pointer().as_ptr()))
    }

    /// Puts a front before a hardware queue; destroys the queue if that fails.
    fn front_around(
        &self,
        hardware: HardwareQueue,
        packets: u32,
        handle: &QueueHandle,
    ) -> Result<SharedFront, Error> {
        let made = self.worker.start().and_then(|()| {
            let doorbell = self.device.create_signal(SILENT, SignalKind::Interrupt)?;
            let (agent, queue) = (handle.agent(), hardware.pointer());
            // SAFETY: the runtime's queue: an `amd_queue_v2_t` with the runtime's pointer behind it.
            let block = unsafe { Block::new(&self.hsa, agent, queue, packets, doorbell) };
            let block = block.inspect_err(|_| self.device.destroy_signal(doorbell))?;
            Ok((block, doorbell))
        });
        let (block, doorbell) = made.inspect_err(|_| discard(&hardware))?;
        hardware.set_front(block.pointer());
        let device: Arc<HsaDevice> = Arc::clone(&self.device);
        let worker = Arc::clone(&self.worker);
        let front = Arc::new(Front::new(block, hardware, handle.clone(), doorbell, device, worker));
        let weak = Arc::downgrade(&front);
        handle.set_nudge(move || weak.upgrade().is_some_and(|front| front.request_mark()));
        if !self.fronts.add(&front) {
            discard(front.hardware());
            return Err(Error::TooManyQueues);
        }
        self.worker.wake();
        Ok(front)
    }
}

fn discard(hardware: &HardwareQueue) {
    let status = hardware.destroy();
    tracing::debug!(?status, "hardware queue without a front destroyed");
}

fn wait_empty(queue: &QueueHandle, deadline: Deadline) {
    if !queue.wait_empty_until(deadline, &LastLook::default()) {
        tracing::error!(queue = %queue.id(), "destroyed with instrumented dispatches in flight");
    }
}

impl std::fmt::Debug for ApplicationQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplicationQueues").field("technique", &self.technique).finish_non_exhaustive()
    }
}
