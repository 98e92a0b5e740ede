//! One limit for several waits in a row.

use std::time::{Duration, Instant};

/// Time for a thread of ours to come to a message, on a busy machine.
const MOMENT: Duration = Duration::from_millis(200);

/// When to give up. Each wait of a sequence takes what is left of it, so the sequence as a whole ends in time.
///
/// ```
/// use std::time::Duration;
/// use wavescope_core::sync::Deadline;
///
/// assert!(Deadline::after(Duration::from_secs(1)).left() <= Duration::from_secs(1));
/// assert_eq!(Deadline::after(Duration::MAX).left(), Duration::MAX);
/// assert!(Deadline::after(Duration::ZERO).is_over());
/// assert!(!Deadline::after(Duration::ZERO).left_or_a_moment().is_zero());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// `timeout` from now; never, if the clock does not reach that far.
    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// The point in time; `None`: never.
    pub fn at(self) -> Option<Instant> {
        self.0
    }

    /// What is left: zero once it is over, [`Duration::MAX`] if it never will be.
    pub fn left(self) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }

    /// As [`left`](Self::left), but no less than a moment: for a wait on our own threads after one that may have used
    /// up everything, and succeeded.
    pub fn left_or_a_moment(self) -> Duration {
        self.left().max(MOMENT)
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        self.left().is_zero()
    }
}
