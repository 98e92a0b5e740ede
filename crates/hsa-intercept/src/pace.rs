//! How long the reaper rests between two looks.
//!
//! The runtime's blocked wait spins for 200 microseconds before it sleeps, and an interrupt for each batch wakes it: whoever
//! goes back to it after each batch keeps a core busy that the application could use. So while dispatches retire, the reaper
//! rests on its own clock instead. Only when nothing has retired for a while does it wait for the bell.

use std::time::Duration;

/// A rest while nobody waits for what the next look finds.
const EASY: Duration = Duration::from_micros(300);

/// A rest while a queue waits to be let in: its gate opens after half of it, in the mean.
const HURRIED: Duration = Duration::from_micros(60);

/// For so long nothing retires before the reaper waits for the bell.
const LINGER: Duration = Duration::from_millis(1);

/// The reaper's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    rest: Duration,
    /// How long it rested since something retired.
    quiet: Duration,
}

impl Pace {
    /// Begins at the bell.
    pub(crate) const fn new() -> Self {
        Self { rest: EASY, quiet: LINGER }
    }

    /// How long to rest; `None` says to wait for the bell.
    pub(crate) fn rest(&self) -> Option<Duration> {
        (self.quiet < LINGER).then_some(self.rest)
    }

    /// Takes in what a look found: whether something retired, and whether a queue waits to be let in.
    pub(crate) fn looked(&mut self, landed: bool, awaited: bool) {
        self.quiet = if landed { Duration::ZERO } else { self.quiet.saturating_add(self.rest) };
        self.rest = if awaited { HURRIED } else { EASY };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rests_after(pace: &mut Pace, awaited: bool) -> usize {
        pace.looked(true, awaited);
        let mut rests = 0;
        while pace.rest().is_some() {
            rests += 1;
            pace.looked(false, awaited);
        }
        rests
    }

    #[test]
    fn without_dispatches_the_bell_is_waited_for() {
        let mut pace = Pace::new();
        assert_eq!(pace.rest(), None);
        pace.looked(false, false);
        assert_eq!(pace.rest(), None);
    }

    #[test]
    fn after_the_last_one_there_are_few_looks_and_then_the_bell() {
        let mut pace = Pace::new();
        // 1,000 microseconds by 300 and by 60.
        assert_eq!(rests_after(&mut pace, false), 4);
        assert_eq!(rests_after(&mut pace, true), 17);
    }

    #[test]
    fn a_queue_that_waits_makes_the_rests_short() {
        let mut pace = Pace::new();
        pace.looked(true, true);
        assert_eq!(pace.rest(), Some(HURRIED));
        pace.looked(true, false);
        assert_eq!(pace.rest(), Some(EASY));
    }
}
