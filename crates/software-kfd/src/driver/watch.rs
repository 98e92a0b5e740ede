//! Watches the doorbells of queues that have nothing to do.
//!
//! A consumer that finds its queue empty polls its doorbell for a while and then sleeps here. One thread looks after
//! all sleepers; without any it sleeps, too. So an idle process costs one look at a few words every few milliseconds,
//! however many queues it has.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// Times that a consumer looks at its doorbell, and at nothing else, before it sleeps here. The model's own consumers
/// spin and yield about 2,050 times and then pause for a few dozen milliseconds on the way to this number.
const PATIENCE: u32 = 2_100;

/// How often the sleepers' doorbells are looked at since one fell asleep or woke: looks, and the pause between them. A
/// doorbell that rings after a long silence costs at most the last one.
const PAUSES: [(u32, Duration); 2] = [(400, Duration::from_micros(500)), (1_000, Duration::from_millis(2))];
const LONGEST: Duration = Duration::from_millis(5);

thread_local! {
    /// Looks of this thread at its doorbell since it last touched other memory or asked for the time, and the value
    /// that it saw.
    static LOOKS: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// A consumer asleep.
struct Sleeper {
    doorbell: &'static AtomicU64,
    /// The last value that it has acted on.
    seen: u64,
    woken: Arc<AtomicBool>,
    thread: Thread,
}

#[derive(Default)]
struct Asleep {
    sleepers: Vec<Sleeper>,
    /// Doorbells whose queues are about to go: nobody sleeps on them.
    closed: Vec<u64>,
    has_watcher: bool,
    /// Looks since somebody fell asleep or woke.
    looks: u32,
}

/// The watch of a process.
#[derive(Default)]
pub(super) struct Watch {
    asleep: Mutex<Asleep>,
    news: Condvar,
}

impl Watch {
    /// The calling thread did something: it is not idle.
    pub(super) fn busy() {
        LOOKS.set((0, 0));
    }

    /// The calling thread is about to look at its doorbell. If it has done nothing else for long enough it sleeps until
    /// the value changes or the doorbell is closed.
    pub(super) fn look(self: &Arc<Self>, doorbell: &'static AtomicU64) {
        let value = doorbell.load(Ordering::Acquire);
        let looks = match LOOKS.get() {
            // The thread looked after this very value was there, and found nothing to do.
            (looks, seen) if looks > 0 && seen == value => looks + 1,
            _ => 1,
        };
        if looks < PATIENCE {
            LOOKS.set((looks, value));
        } else {
            LOOKS.set((0, 0));
            self.sleep(doorbell, value);
        }
    }

    /// Sleeps until the doorbell is no longer `seen`, the last value that the calling thread has acted on, or is closed.
    pub(super) fn sleep(self: &Arc<Self>, doorbell: &'static AtomicU64, seen: u64) {
        let woken = Arc::new(AtomicBool::new(false));
        {
            let mut asleep = self.lock();
            if asleep.closed.contains(&address(doorbell)) || !self.has_watcher(&mut asleep) {
                return;
            }
            let (thread, woken) = (std::thread::current(), Arc::clone(&woken));
            asleep.sleepers.push(Sleeper { doorbell, seen, woken, thread });
            asleep.looks = 0;
            self.news.notify_one();
        }
        while !woken.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    /// Wakes who sleeps on a doorbell and lets nobody sleep on it any more: its queue is about to go.
    pub(super) fn close(&self, doorbell: &'static AtomicU64) {
        let mut asleep = self.lock();
        asleep.closed.push(address(doorbell));
        asleep.wake(|sleeper| std::ptr::eq(sleeper.doorbell, doorbell));
    }

    /// The doorbell belongs to a new queue.
    pub(super) fn open(&self, doorbell: &'static AtomicU64) {
        self.lock().closed.retain(|closed| *closed != address(doorbell));
    }

    /// Starts the watching thread with the first sleeper. Where there is no thread to be had nobody sleeps.
    fn has_watcher(self: &Arc<Self>, asleep: &mut Asleep) -> bool {
        if !asleep.has_watcher {
            let watch = Arc::clone(self);
            let thread = std::thread::Builder::new().name("doorbells".into());
            asleep.has_watcher = thread.spawn(move || watch.work()).is_ok();
        }
        asleep.has_watcher
    }

    fn work(&self) {
        loop {
            let mut asleep = self.lock();
            while asleep.sleepers.is_empty() {
                asleep = self.news.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            }
            asleep.wake(|sleeper| sleeper.doorbell.load(Ordering::Acquire) != sleeper.seen);
            asleep.looks = asleep.looks.saturating_add(1);
            let pause = PAUSES.iter().find(|(looks, _)| asleep.looks < *looks);
            let pause = pause.map_or(LONGEST, |(_, pause)| *pause);
            drop(asleep);
            std::thread::sleep(pause);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Asleep> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asleep {
    fn wake(&mut self, whom: impl Fn(&Sleeper) -> bool) {
        let before = self.sleepers.len();
        self.sleepers.retain(|sleeper| {
            let wake = whom(sleeper);
            if wake {
                sleeper.woken.store(true, Ordering::Release);
                sleeper.thread.unpark();
            }
            !wake
        });
        if self.sleepers.len() != before {
            self.looks = 0;
        }
    }
}

fn address(doorbell: &AtomicU64) -> u64 {
    std::ptr::from_ref(doorbell) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doorbell() -> &'static AtomicU64 {
        Box::leak(Box::new(AtomicU64::new(u64::MAX)))
    }

    #[test]
    fn sleeper_wakes_when_its_doorbell_rings_and_not_when_another_does() {
        let (watch, own, other) = (Arc::new(Watch::default()), doorbell(), doorbell());
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| watch.sleep(own, u64::MAX));
            while watch.lock().sleepers.is_empty() {
                std::thread::yield_now();
            }
            other.store(1, Ordering::Release);
            std::thread::sleep(4 * LONGEST);
            assert!(!sleeper.is_finished());
            own.store(1, Ordering::Release);
            sleeper.join().unwrap();
        });
    }

    #[test]
    fn closing_wakes_and_keeps_awake_until_opened_again() {
        let (watch, own) = (Arc::new(Watch::default()), doorbell());
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| watch.sleep(own, u64::MAX));
            while watch.lock().sleepers.is_empty() {
                std::thread::yield_now();
            }
            watch.close(own);
            sleeper.join().unwrap();
            // Closed before it could fall asleep: returns at once.
            watch.sleep(own, u64::MAX);
            watch.open(own);
            let sleeper = scope.spawn(|| watch.sleep(own, u64::MAX));
            while watch.lock().sleepers.is_empty() {
                std::thread::yield_now();
            }
            watch.close(own);
            sleeper.join().unwrap();
        });
    }

    #[test]
    fn only_looks_without_work_between_them_lead_to_sleep() {
        let (watch, own) = (Arc::new(Watch::default()), doorbell());
        for _ in 0..3 {
            for _ in 1..PATIENCE {
                watch.look(own);
            }
            Watch::busy();
        }
        assert!(watch.lock().sleepers.is_empty());
        watch.close(own);
        assert_eq!(LOOKS.get(), (0, 0));
    }

    #[test]
    fn value_that_came_between_two_looks_is_not_slept_over() {
        let (watch, own) = (Arc::new(Watch::default()), doorbell());
        for _ in 1..PATIENCE {
            watch.look(own);
        }
        own.store(7, Ordering::Release);
        // Would be the last look before sleep, but for the new value.
        watch.look(own);
        assert_eq!(LOOKS.get(), (1, 7));
        // A thread that goes to sleep having seen less is woken.
        watch.sleep(own, 6);
    }
}
