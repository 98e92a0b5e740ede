//! Threads of this crate are announced.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wavescope_core::{
    AgentId, Answer, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, DispatchTimes, Interception,
    ProgramSink, Service, Subscription,
};
use wavescope_hsa_intercept::{Device, Engine, Error, Signal, SignalKind, ThreadNotice, announce_threads};

/// A device without queues: signals that never change.
struct Still;

impl Device for Still {
    fn create_signal(&self, _initial: i64, _kind: SignalKind) -> Result<Signal, Error> {
        Ok(Signal(1))
    }

    fn destroy_signal(&self, _signal: Signal) {}

    fn load(&self, _signal: Signal) -> i64 {
        0
    }

    fn store(&self, _signal: Signal, _value: i64) {}

    fn subtract(&self, _signal: Signal, _by: i64) {}

    fn wait_below(&self, _signal: Signal, _below: i64, _limit: Duration) {
        std::thread::yield_now();
    }

    fn dispatch_times(&self, _agent: AgentId, _signal: Signal) -> Option<DispatchTimes> {
        None
    }

    fn now_ns(&self) -> u64 {
        0
    }
}

struct Nobody;

impl DispatchSubscriber for Nobody {
    fn enqueue(&self, _dispatch: &Dispatch, _sink: &mut ProgramSink<'_>) -> Answer {
        Answer::Ignore
    }

    fn publish(&self, _event: DispatchEvent) {}
}

/// Threads of the process by the operating system's list.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// What was announced, and how many threads there were then.
#[derive(Default)]
struct Announced(Mutex<Vec<(String, bool, usize)>>);

impl ThreadNotice for Announced {
    fn before(&self, name: &str) {
        self.0.lock().unwrap().push((name.to_owned(), false, threads()));
    }

    fn after(&self, name: &str) {
        self.0.lock().unwrap().push((name.to_owned(), true, threads()));
    }
}

// Field report G15: every thread is bracketed by notices; none starts by itself when the engine is made (G10).
#[test]
fn every_thread_is_announced_before_and_after_it_is_created() {
    let announced = Arc::new(Announced::default());
    announce_threads(Arc::<Announced>::clone(&announced));
    let before = threads();
    let engine = Engine::new(Arc::new(Still), [AgentId(0)]);
    assert_eq!(threads(), before, "an engine alone has no thread");
    let subscription = Subscription {
        context: ContextId(1),
        service: Service::DispatchCounting,
        agents: Vec::new(),
        serialize: false,
        subscriber: Arc::new(Nobody),
    };
    engine.subscribe(subscription).unwrap();
    assert_eq!(threads(), before + 1);
    let told = announced.0.lock().unwrap().clone();
    let reaper = "wavescope-reap".to_owned();
    assert_eq!(told, [(reaper.clone(), false, before), (reaper, true, before + 1)]);
    engine.shut_down(Duration::from_secs(10)).unwrap();
}
