//! How a consumer passes time when it cannot go on: first it spins, then it yields, then it sleeps longer and longer.

use std::time::Duration;

use super::control::Control;

/// Rounds of spinning before the first yield: about as long as a producer needs between two doorbells.
const SPINS: u32 = 2_000;
/// Rounds of yielding before the first sleep.
const YIELDS: u32 = 50;
/// The first sleep, doubled each time.
const FIRST_SLEEP: Duration = Duration::from_micros(20);
/// Sleeps of that length before they grow: who waits for another queue's kernels waits for some hundred microseconds.
const SHORT_SLEEPS: u32 = 32;
/// The longest sleep: what a signal stored by the CPU, which wakes nobody, costs at worst.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Counts the rounds since the last progress.
#[derive(Debug, Default)]
pub(super) struct Pause {
    rounds: u32,
}

impl Pause {
    pub(super) fn reset(&mut self) {
        self.rounds = 0;
    }

    /// Passes a little time. Where nothing but [`Control`] can bring news, `watched` is true and the sleep has no end.
    pub(super) fn pass(&mut self, control: &Control, limit: u64, watched: bool, at_most: Option<Duration>) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= SPINS {
            std::hint::spin_loop();
        } else if self.rounds <= SPINS + YIELDS {
            std::thread::yield_now();
        } else {
            control.sleep(limit, self.sleep_time(watched, at_most));
        }
    }

    fn sleep_time(&self, watched: bool, at_most: Option<Duration>) -> Option<Duration> {
        let doublings = (self.rounds - SPINS - YIELDS - 1).saturating_sub(SHORT_SLEEPS).min(6);
        let grown = (!watched).then(|| (FIRST_SLEEP * (1 << doublings)).min(LONGEST_SLEEP));
        match (grown, at_most) {
            (Some(grown), Some(most)) => Some(grown.min(most)),
            (time, None) | (None, time) => time,
        }
    }
}
