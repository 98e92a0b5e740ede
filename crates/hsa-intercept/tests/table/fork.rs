//! Forked children: what the parent installed is inert there.

use std::sync::Arc;
use std::time::Duration;

use hsa_sys::HSA_STATUS_SUCCESS;
use wavescope_core::{ContextId, Interception, InterceptionError, SubscriptionId};
use wavescope_hsa_intercept::{Interceptor, Options, Technique};

use crate::application::*;
use crate::runtime::{Runtime, new_table};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

/// Runs `child` in a forked child and returns its exit status; -1 if it hung or was killed.
fn forked(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child runs a test that touches nothing which other threads hold, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: ends a child that hangs.
        unsafe { libc::alarm(10) };
        let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: no handlers of the parent run.
        unsafe { libc::_exit(i32::from(!passed)) };
    }
    assert!(pid > 0);
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
}

fn everything_is_refused(interceptor: &Interceptor, id: SubscriptionId) -> bool {
    let service = FakeService::new(|_| Plan::Count);
    let refused = interceptor.subscribe(service.subscription(&[], true));
    matches!(refused, Err(InterceptionError::ShutDown))
        && interceptor.quiesce(id).is_ok()
        && interceptor.drain(id, LIMIT).is_ok()
        && interceptor.unsubscribe(id).is_ok()
        && interceptor.shut_down().is_ok()
}

#[test]
fn a_child_may_call_and_end_everything_and_nothing_waits() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64);
        // In flight in the parent when the child is made.
        runtime.submit(queue, &[kernel(1, 0)]);
        let status = forked(|| {
            let refused = everything_is_refused(&interceptor, id);
            // Calls that the application's own cleanup makes.
            let app = runtime.signal(1);
            runtime.silent_store(app, 1);
            let plain = runtime.queue(64);
            runtime.submit(plain, &[kernel(2, 0)]);
            let destroyed = runtime.destroy(plain) == HSA_STATUS_SUCCESS;
            drop(Arc::clone(&interceptor));
            refused && destroyed
        });
        assert_eq!(status, 0);
        runtime.run_until(|| service.retired() == 1);
        assert_eq!(ran(queue), [1], "the parent goes on, and has nothing of the child");
        runtime.destroy(queue);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// Another thread is inside interception when the child is made: its locks are never released there.
#[test]
fn a_child_does_not_wait_for_locks_of_the_parents_threads() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for context in 0..3 {
            let (interceptor, over) = (&interceptor, &over);
            scope.spawn(move || {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let service = FakeService::new(|_| Plan::Count);
                    let mut subscription = service.subscription(&[], true);
                    subscription.context = ContextId(context);
                    let id = interceptor.subscribe(subscription).unwrap();
                    interceptor.quiesce(id).unwrap();
                    interceptor.unsubscribe(id).unwrap();
                }
            });
        }
        let statuses: Vec<_> =
            (0..50).map(|_| forked(|| everything_is_refused(&interceptor, SubscriptionId(1)))).collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == 0), "{statuses:?}");
    });
    interceptor.shut_down().unwrap();
}

#[test]
fn a_child_that_installs_again_measures() {
    for technique in TECHNIQUES {
        let mut runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        // The parent's thread learns its number.
        let queue = runtime.queue(64);
        runtime.submit(queue, &[kernel(1, 0)]);
        runtime.run_until(|| service.retired() == 1);
        let status = forked(|| {
            runtime.table = new_table();
            let options = Options { technique: Some(technique), ..Options::default() };
            // SAFETY: a table of the scripted runtime, which nobody else uses.
            let Ok(own) = (unsafe { Interceptor::install(runtime.table, None, options) }) else {
                return false;
            };
            let service = FakeService::new(|_| Plan::Count);
            own.subscribe(service.subscription(&[], true)).unwrap();
            let queue = runtime.queue(64);
            runtime.submit(queue, &[kernel(1, 0), kernel(2, 0)]);
            runtime.run_until(|| service.retired() == 2);
            let here = service.dispatched()[0].thread.map(|thread| thread.0);
            // SAFETY: no arguments.
            let right = here == Some(unsafe { libc::gettid() }.cast_unsigned());
            runtime.destroy(queue) == HSA_STATUS_SUCCESS && own.shut_down().is_ok() && right
        });
        assert_eq!(status, 0);
        interceptor.shut_down().unwrap();
    }
}
