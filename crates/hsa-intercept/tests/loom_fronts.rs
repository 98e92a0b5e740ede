//! Models of fronts: how they are found while others take them out, and how they end under their readers; and of snapshots,
//! which are found in the same way. Each property has twins with one step of the product switched.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p wavescope-hsa-intercept --test loom_fronts`
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

#[path = "loom_gpu/mortal.rs"]
mod mortal;
#[path = "loom_gpu/twin.rs"]
mod twin;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mortal::Mortal;
use twin::{NEVER, broken};
use wavescope_core::sync::model::explore;
use wavescope_core::sync::thread;
use wavescope_hsa_intercept::fault::Fault;
use wavescope_hsa_intercept::model::{Shelf, Snapshots, Turn};

/// What readers use and somebody frees.
struct Memory {
    key: usize,
    content: Mortal,
    frees: AtomicUsize,
}

impl Memory {
    fn new(key: usize) -> Arc<Self> {
        Arc::new(Self { key, content: Mortal::new(), frees: AtomicUsize::new(0) })
    }

    fn read(&self) {
        self.content.use_it("read after it was freed");
    }

    fn free(&self) {
        self.content.end();
        self.frees.fetch_add(1, Ordering::Relaxed);
    }

    fn frees(&self) -> usize {
        self.frees.load(Ordering::Relaxed)
    }
}

const OLD: usize = 0x7F00_0000_0040;
/// Searched for from the same place on.
const NEW: usize = 0x7F00_0000_0080;

/// A front goes, and another comes in its place, while threads look the first one up.
fn look_up_against_removal(readers: usize) {
    let shelf = Arc::new(Shelf::default());
    let (old, new) = (Memory::new(OLD), Memory::new(NEW));
    assert!(shelf.add(OLD, &old));
    let find = |shelf: &Shelf<Memory>| {
        if let Some(found) = shelf.find(OLD) {
            assert_eq!(found.key, OLD, "another front was found");
            found.read();
        }
    };
    let readers: Vec<_> = (0..readers)
        .map(|_| {
            let shelf = Arc::clone(&shelf);
            thread::spawn(move || find(&shelf))
        })
        .collect();
    shelf.remove(OLD, Arc::clone(&old));
    shelf.sweep().iter().for_each(|gone| gone.free());
    assert!(shelf.add(NEW, &new));
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    shelf.sweep().iter().for_each(|gone| gone.free());
    assert_eq!((old.frees(), new.frees()), (1, 0), "who left is waited for no longer");
    assert!(shelf.find(OLD).is_none() && shelf.find(NEW).is_some());
}

fn one_look_up_against_removal() {
    look_up_against_removal(1);
}

fn two_look_ups_against_removal() {
    look_up_against_removal(2);
}

#[test]
fn a_front_that_was_found_is_not_freed_while_it_is_read() {
    explore("a_front_that_was_found_is_not_freed_while_it_is_read", two_look_ups_against_removal);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_reader_pinned_without_a_barrier_reads_what_is_freed() {
    broken(Fault::PinnedWithoutBarrier, one_look_up_against_removal);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_reader_that_came_between_question_and_removal_reads_what_is_freed() {
    broken(Fault::UsersAskedBeforeTakenOut, one_look_up_against_removal);
}

#[test]
#[should_panic(expected = "another front was found")]
fn a_key_that_is_asked_once_finds_the_next_front_of_its_place() {
    broken(Fault::KeyAskedOnce, one_look_up_against_removal);
}

/// A front goes while a thread looks it up twice in a row.
fn visits_against_removal() {
    let shelf = Arc::new(Shelf::default());
    let old = Memory::new(OLD);
    assert!(shelf.add(OLD, &old));
    let reader = {
        let shelf = Arc::clone(&shelf);
        thread::spawn(move || {
            for _ in 0..2 {
                shelf.find(OLD).inspect(|found| found.read());
            }
        })
    };
    thread::yield_now();
    shelf.remove(OLD, Arc::clone(&old));
    while old.frees() == 0 {
        shelf.sweep().iter().for_each(|gone| gone.free());
        thread::yield_now();
    }
    reader.join().unwrap();
}

#[test]
fn who_came_again_has_done_with_what_was_taken_out_before() {
    explore("who_came_again_has_done_with_what_was_taken_out_before", visits_against_removal);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_visit_that_is_not_ordered_before_the_next_meets_the_free() {
    broken(Fault::VisitUnordered, visits_against_removal);
}

/// A snapshot of subscribers is swapped while a hook reads it twice in a row.
fn visits_against_swap() {
    let old = Memory::new(OLD);
    let snapshots = Arc::new(Snapshots::new(Arc::clone(&old)));
    let hook = {
        let snapshots = Arc::clone(&snapshots);
        thread::spawn(move || {
            for _ in 0..2 {
                snapshots.read().inspect(|found| found.read());
            }
        })
    };
    thread::yield_now();
    snapshots.swap(None);
    old.free();
    hook.join().unwrap();
}

#[test]
fn a_hook_that_came_again_has_done_with_the_old_snapshot() {
    explore("a_hook_that_came_again_has_done_with_the_old_snapshot", visits_against_swap);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_hook_whose_visits_are_not_ordered_reads_a_snapshot_that_is_freed() {
    broken(Fault::VisitUnordered, visits_against_swap);
}

/// A front with its hardware queue.
struct Front {
    turn: Turn<Arc<Memory>>,
    hardware: Arc<Memory>,
}

impl Front {
    /// Reads it once, unless somebody does; writes to the hardware queue.
    fn pump(&self) {
        if !self.turn.take() {
            return;
        }
        if !self.turn.is_closed() {
            self.hardware.read();
        }
        if let Some(hardware) = self.turn.leave() {
            hardware.free();
        }
    }
}

/// A queue is destroyed while two threads ring its doorbell.
fn end_against_readers(patience: Duration) {
    let hardware = Memory::new(0);
    let front = Arc::new(Front { turn: Turn::default(), hardware: Arc::clone(&hardware) });
    let readers = [(); 2].map(|()| {
        let front = Arc::clone(&front);
        thread::spawn(move || front.pump())
    });
    let destroying = {
        let (front, hardware) = (Arc::clone(&front), Arc::clone(&hardware));
        thread::spawn(move || {
            if front.turn.end(patience, Arc::clone(&hardware)) {
                hardware.free();
            }
        })
    };
    destroying.join().unwrap();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    front.pump();
    assert_eq!(hardware.frees(), 1, "the hardware queue is destroyed once");
}

fn patient_end_against_readers() {
    end_against_readers(NEVER);
}

fn hasty_end_against_readers() {
    end_against_readers(Duration::ZERO);
}

#[test]
fn a_front_ends_once_nobody_reads_it() {
    explore("a_front_ends_once_nobody_reads_it", patient_end_against_readers);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_front_that_ends_beside_its_reader_is_read_after_its_end() {
    broken(Fault::EndedBesideReader, patient_end_against_readers);
}

#[test]
fn an_end_that_is_left_to_the_reader_is_done_once() {
    explore("an_end_that_is_left_to_the_reader_is_done_once", hasty_end_against_readers);
}

#[test]
#[should_panic(expected = "the hardware queue is destroyed once")]
fn an_end_left_to_a_reader_that_is_gone_is_done_by_nobody() {
    broken(Fault::EndLeftToNobody, hasty_end_against_readers);
}
