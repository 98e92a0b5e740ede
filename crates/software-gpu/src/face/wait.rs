//! Waiting for signals: look, spin a moment, then sleep on their events.

use std::thread;
use std::time::{Duration, Instant};

use hsa_sys::{
    HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_GTE, HSA_SIGNAL_CONDITION_LT, HSA_SIGNAL_CONDITION_NE,
    hsa_signal_condition_t, hsa_signal_value_t,
};
use std::sync::atomic::Ordering;

use super::signal::Signal;

/// How long a blocked wait looks before it sleeps. ROCr takes 200 us; on the few cores that a software GPU shares
/// with its application, the consumer thread needs the core more than the waiter does.
const SPIN: Duration = Duration::from_micros(20);

/// How long a wait sleeps between looks at a signal that has no event.
const POLL: Duration = Duration::from_micros(100);

/// A signal and the value that it should reach.
#[derive(Clone, Copy)]
pub(super) struct Condition {
    pub(super) signal: &'static Signal,
    pub(super) condition: hsa_signal_condition_t,
    pub(super) compare: hsa_signal_value_t,
}

/// Whether one of several conditions is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Any,
    All,
}

/// How to pass the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// `HSA_WAIT_STATE_ACTIVE`: latency matters more than the core.
    Active,
    /// `HSA_WAIT_STATE_BLOCKED`.
    Blocked,
}

impl Condition {
    /// The value if it meets the condition.
    pub(super) fn met(&self) -> Option<hsa_signal_value_t> {
        let value = self.signal.value().load(Ordering::Acquire);
        holds(value, self.condition, self.compare).then_some(value)
    }
}

/// Compares as `hsa_signal_condition_t` says; an unknown condition never holds.
pub(super) fn holds(value: i64, condition: hsa_signal_condition_t, compare: i64) -> bool {
    match condition {
        HSA_SIGNAL_CONDITION_EQ => value == compare,
        HSA_SIGNAL_CONDITION_NE => value != compare,
        HSA_SIGNAL_CONDITION_LT => value < compare,
        HSA_SIGNAL_CONDITION_GTE => value >= compare,
        _ => false,
    }
}

/// Waits until `until` of the conditions hold. Returns the index of one that holds (with `All`, 0), or `None` when
/// the time is over or, so that nobody sleeps for ever, when one of the signals was destroyed.
pub(super) fn wait(
    conditions: &[Condition],
    until: Until,
    timeout: Duration,
    patience: Patience,
) -> Option<usize> {
    let start = Instant::now();
    let waiting = Waiting { conditions, until, start, timeout };
    if let Some(outcome) = waiting.spin(patience) {
        return outcome;
    }
    waiting.sleep()
}

struct Waiting<'a> {
    conditions: &'a [Condition],
    until: Until,
    start: Instant,
    timeout: Duration,
}

impl Waiting<'_> {
    /// What the wait returns, if it is over.
    fn outcome(&self) -> Option<Option<usize>> {
        let found = match self.until {
            Until::Any => self.conditions.iter().position(|condition| condition.met().is_some()),
            Until::All => self.conditions.iter().all(|condition| condition.met().is_some()).then_some(0),
        };
        let dead = || self.conditions.iter().any(|condition| !condition.signal.is_alive());
        let over = found.is_some() || self.start.elapsed() >= self.timeout || dead();
        over.then_some(found)
    }

    fn spin(&self, patience: Patience) -> Option<Option<usize>> {
        loop {
            let outcome = self.outcome();
            if outcome.is_some() || (patience == Patience::Blocked && self.start.elapsed() >= SPIN) {
                return outcome;
            }
            match patience {
                Patience::Active => thread::yield_now(),
                Patience::Blocked => std::hint::spin_loop(),
            }
        }
    }

    fn sleep(&self) -> Option<usize> {
        let events: Option<Vec<_>> =
            self.conditions.iter().map(|condition| condition.signal.event()).collect();
        let entered: Vec<_> = events.iter().flatten().map(|event| event.enter()).collect();
        loop {
            if let Some(outcome) = self.outcome() {
                drop(entered);
                return outcome;
            }
            let left = self.timeout.saturating_sub(self.start.elapsed());
            thread::park_timeout(if events.is_some() { left } else { left.min(POLL) });
        }
    }
}

/// A time-out in ticks of the system clock (nanoseconds); the largest value means for ever.
pub(super) fn timeout(hint: u64) -> Duration {
    Duration::from_nanos(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::signal::Wake;

    fn condition(signal: &'static Signal, compare: i64) -> Condition {
        Condition { signal, condition: HSA_SIGNAL_CONDITION_EQ, compare }
    }

    // Operators as hsa.h defines them.
    #[test]
    fn conditions_compare_signed() {
        assert!(holds(-1, HSA_SIGNAL_CONDITION_LT, 0));
        assert!(!holds(-1, HSA_SIGNAL_CONDITION_GTE, 0));
        assert!(holds(0, HSA_SIGNAL_CONDITION_GTE, 0));
        assert!(holds(1, HSA_SIGNAL_CONDITION_NE, 0));
        assert!(!holds(0, hsa_signal_condition_t(77), 0));
    }

    #[test]
    fn sleeping_wait_wakes_on_a_store_from_another_thread() {
        for wake in [Wake::Interrupt, Wake::Poll] {
            let signal = Signal::create(1, wake);
            let waiter = thread::spawn(move || {
                wait(&[condition(signal, 0)], Until::Any, Duration::from_secs(20), Patience::Blocked)
            });
            // Whether it sleeps already or not, the store must reach it.
            signal.value().store(0, Ordering::Release);
            signal.notify();
            assert_eq!(waiter.join().unwrap(), Some(0));
            signal.destroy();
        }
    }

    #[test]
    fn time_over_is_no_index() {
        let signal = Signal::create(1, Wake::Interrupt);
        let start = Instant::now();
        let outcome = wait(&[condition(signal, 0)], Until::Any, Duration::from_millis(3), Patience::Blocked);
        assert_eq!(outcome, None);
        assert!(start.elapsed() >= Duration::from_millis(3));
        signal.destroy();
    }

    #[test]
    fn all_waits_for_the_last_and_any_names_the_first() {
        let (a, b) = (Signal::create(1, Wake::Interrupt), Signal::create(0, Wake::Interrupt));
        let conditions = [condition(a, 0), condition(b, 0)];
        let moment = Duration::from_millis(1);
        assert_eq!(wait(&conditions, Until::Any, moment, Patience::Blocked), Some(1));
        assert_eq!(wait(&conditions, Until::All, moment, Patience::Active), None);
        a.value().store(0, Ordering::Release);
        assert_eq!(wait(&conditions, Until::All, moment, Patience::Blocked), Some(0));
        a.destroy();
        b.destroy();
    }
}
