//! What became of the traces of a service.

use wavescope_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What became of the traces so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// Traced: delivered, lost, or still in flight.
    pub traced: u64,
    /// Dispatches that the callback wanted no trace of.
    pub declined: u64,
    /// Dispatches not traced because too many were in flight, or the owner was gone.
    pub skipped: u64,
    /// Of the traced: their data were copied.
    pub delivered: u64,
    /// Of the traced: their data could not be read.
    pub lost: u64,
}

/// The numbers behind [`TraceSummary`].
#[derive(Default)]
pub(super) struct Tally {
    traced: AtomicU64,
    declined: AtomicU64,
    skipped: AtomicU64,
    delivered: AtomicU64,
    lost: AtomicU64,
    is_hung: AtomicBool,
}

impl Tally {
    /// The GPU did not answer: it may still run the packets and write the records of this service.
    pub(super) fn hung(&self) {
        self.is_hung.store(true, Ordering::Release);
    }

    /// Whether memory that packets name must be kept.
    pub(super) fn is_hung(&self) -> bool {
        self.is_hung.load(Ordering::Acquire)
    }

    pub(super) fn traced(&self) {
        self.traced.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn declined(&self) {
        self.declined.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn summary(&self) -> TraceSummary {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        TraceSummary {
            traced: read(&self.traced),
            declined: read(&self.declined),
            skipped: read(&self.skipped),
            delivered: read(&self.delivered),
            lost: read(&self.lost),
        }
    }
}
