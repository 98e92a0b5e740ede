//! Models under loom: what every crate's models share. Absent from any other build.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A model with fewer schedules than this hardly lets its threads meet.
const FEW_SCHEDULES: usize = 100;

/// Explores all schedules of `body` and prints how many there were.
///
/// # Panics
/// In `body`, under a schedule that breaks what it asserts; with fewer schedules than a model worth its name has.
pub fn explore(name: &str, body: fn()) {
    let schedules = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&schedules);
    loom::model(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        body();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    println!("{name}: {schedules} schedules");
    assert!(schedules >= FEW_SCHEDULES, "{name}: only {schedules} schedules");
}
