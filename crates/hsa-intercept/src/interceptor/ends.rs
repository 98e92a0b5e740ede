//! The end of the runtime, while interception and its queues may still be there.

use std::time::Duration;

use wavescope_core::sync::Deadline;
use wavescope_core::sync::atomic::Ordering;

use super::Interceptor;
use crate::front::SharedFront;
use crate::gate::{ForApplication, GoingDown};
use crate::thread_mark::InsideHook;

/// How long the end of a runtime waits for our threads to let go of signals.
pub(super) const LONGEST_FAREWELL: Duration = Duration::from_secs(2);

/// How long it waits for readers of fronts, while other fronts stand still. What takes longer is a client's callback on a
/// thread of the application, which itself answers for the end that comes meanwhile.
const LONGEST_HOLD: Duration = Duration::from_millis(100);

/// How long a thread of ours takes to come back from the runtime once it was woken.
const MOMENT: Duration = Duration::from_millis(5);

/// Calls of `hsa_shut_down` under way, of which one may be the last.
#[derive(Default)]
pub(super) struct Ends {
    count: u32,
    /// Fronts that nobody reads meanwhile.
    held: Vec<SharedFront>,
    /// The gate was opened again for a tool that is unloaded.
    reopened: bool,
}

impl Interceptor {
    /// The runtime may be about to end. ROCr refuses calls by the time it unloads its tools, so signals of ours are destroyed
    /// now if no queue is left; what needs one later makes a new one.
    pub(crate) fn let_go(&self) {
        if self.is_inert() || self.is_gone() || InsideHook::is_current() {
            return;
        }
        let deadline = Deadline::after(LONGEST_FAREWELL);
        if self.over.load(Ordering::Acquire) {
            self.queues.wait_for_late_ends(deadline);
        } else if self.queues.let_go(deadline) {
            self.engine.let_go(deadline);
        }
    }

    /// `hsa_shut_down` is about to be called: until [`after_end`](Self::after_end) nothing of ours touches the runtime but
    /// on this thread.
    pub(crate) fn before_end(&self) {
        if self.is_inert() || self.is_gone() {
            return;
        }
        let mut ends = self.ends.lock();
        ends.count += 1;
        if ends.count == 1 {
            ends.held = self.hold(Deadline::after(LONGEST_FAREWELL));
        }
    }

    /// `hsa_shut_down` returned. If it was not the last, everything goes on.
    pub(crate) fn after_end(&self) {
        if self.is_inert() {
            return;
        }
        let mut ends = self.ends.lock();
        ends.count = ends.count.saturating_sub(1);
        if self.is_gone() {
            ends.held.clear();
        } else if !self.device.is_open() {
            self.set_gone(&mut ends.held);
        } else if ends.count == 0 && !std::mem::take(&mut ends.reopened) {
            self.release(std::mem::take(&mut ends.held));
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.device.gate().is_gone()
    }

    /// Shuts the gate before the runtime. Returns the fronts that are held.
    pub(super) fn hold(&self, deadline: Deadline) -> Vec<SharedFront> {
        let held = self.queues.hold(Deadline::after(LONGEST_HOLD.min(deadline.left())));
        // The reaper may be waiting for its bell. It is woken while the gate is open: who waits there may hold locks of the
        // engine.
        loop {
            self.engine.let_go(Deadline::after(Duration::ZERO));
            self.device.gate().shut();
            if self.device.gate().wait_empty(Deadline::after(MOMENT.min(deadline.left()))) {
                return held;
            }
            if deadline.is_over() {
                tracing::warn!("the runtime may go down while it is called");
                return held;
            }
            self.device.gate().open();
        }
    }

    pub(super) fn release(&self, held: Vec<SharedFront>) {
        self.device.gate().open();
        self.queues.go_on(held);
    }

    /// Interception is called. If it is a tool that is unloaded that calls, everything goes on until it shuts it down, which
    /// is why it should. Services have threads that call the runtime, too.
    pub(super) fn called(&self) -> ForApplication {
        // Asked before anything is locked: in a forked child a lock may be held for good.
        if !self.is_inert() && GoingDown::is_current() {
            let mut ends = self.ends.lock();
            if !self.is_gone() && !std::mem::replace(&mut ends.reopened, true) {
                self.release(std::mem::take(&mut ends.held));
            }
        }
        ForApplication::enter()
    }

    pub(super) fn set_gone(&self, held: &mut Vec<SharedFront>) {
        self.device.gate().set_gone();
        self.queues.runtime_gone();
        self.over.store(true, Ordering::Release);
        // Still held: nobody reads them any more.
        held.clear();
    }
}
