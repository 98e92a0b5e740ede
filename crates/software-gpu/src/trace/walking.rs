//! The waves of a trace's target in the order in which their instructions become events.
//!
//! Each wave's events come in order of time from its [`Cursor`], so the whole is a merge. Waves whose next event is near
//! stand on a wheel with a queue for each cycle; those beyond it, mostly waves that have yet to begin, wait in a heap. So
//! an event costs the same however many waves there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::event::Event;
use super::instructions::Cursor;

/// Merges waves' events. Within a cycle, waves take turns in the order in which they came to it.
#[derive(Debug)]
pub(crate) struct Walking {
    near: Wheel,
    /// Cycle of the next event, order of arrival, place.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrived: u64,
    /// Waves by place; those of free places are over.
    cursors: Vec<Cursor>,
    free: Vec<u32>,
}

impl Default for Walking {
    fn default() -> Self {
        let (far, cursors, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { near: Wheel::new(), far, arrived: 0, cursors, free }
    }
}

impl Walking {
    /// Adds a wave.
    pub(crate) fn add(&mut self, mut cursor: Cursor) {
        let Some(due) = cursor.due() else { return };
        let place = match self.free.pop() {
            Some(place) => {
                self.cursors[place as usize] = cursor;
                place
            }
            None => {
                self.cursors.push(cursor);
                self.cursors.len() as u32 - 1
            }
        };
        self.wait(due, place);
    }

    /// Takes the next event if it happens up to `last`.
    pub(crate) fn take(&mut self, last: u64) -> Option<(u64, Event)> {
        self.approach();
        let place = self.near.take(last)?;
        let cursor = &mut self.cursors[place as usize];
        let event = cursor.take();
        match cursor.due() {
            Some(due) if self.near.reaches(due) => self.near.add(due, place),
            Some(due) => self.wait(due, place),
            None => self.free.push(place),
        }
        event
    }

    /// Forgets all waves.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn wait(&mut self, due: u64, place: u32) {
        self.far.push(Reverse((due, self.arrived, place)));
        self.arrived += 1;
    }

    /// Moves onto the wheel what it reaches.
    fn approach(&mut self) {
        while let Some(&Reverse((due, _, place))) = self.far.peek() {
            if self.near.is_empty() {
                self.near.turn_to(due);
            }
            if !self.near.reaches(due) {
                return;
            }
            self.near.add(due, place);
            self.far.pop();
        }
    }
}

/// Cycles on the wheel: more than what an instruction takes, memory included.
const SPAN: usize = 1 << 10;

/// No place.
const NONE: u32 = u32::MAX;

/// Places by cycle, for the cycles from `now` on.
#[derive(Debug)]
struct Wheel {
    now: u64,
    /// Bit set: the cycle's queue holds something.
    busy: [u64; SPAN / 64],
    /// First and last of each cycle's queue.
    queues: Vec<(u32, u32)>,
    /// By place: who stands behind it.
    behind: Vec<u32>,
    count: usize,
}

impl Wheel {
    fn new() -> Self {
        let (busy, queues) = ([0; SPAN / 64], vec![(NONE, NONE); SPAN]);
        Self { now: 0, busy, queues, behind: Vec::new(), count: 0 }
    }

    const fn is_empty(&self) -> bool {
        self.count == 0
    }

    const fn reaches(&self, cycle: u64) -> bool {
        cycle < self.now + SPAN as u64
    }

    /// Goes on at `cycle`. The wheel is empty.
    fn turn_to(&mut self, cycle: u64) {
        self.now = self.now.max(cycle);
    }

    /// Puts a place at the end of a cycle's queue; of the present cycle's, if it is over.
    fn add(&mut self, cycle: u64, place: u32) {
        let slot = cycle.max(self.now) as usize % SPAN;
        let index = place as usize;
        if self.behind.len() <= index {
            self.behind.resize(index + 1, NONE);
        }
        self.behind[index] = NONE;
        let (first, last) = &mut self.queues[slot];
        match *last {
            NONE => *first = place,
            before => self.behind[before as usize] = place,
        }
        *last = place;
        self.busy[slot / 64] |= 1 << (slot % 64);
        self.count += 1;
    }

    /// Takes the first place of the first cycle, if that is not after `last`.
    fn take(&mut self, last: u64) -> Option<u32> {
        let cycle = self.next()?;
        if cycle > last {
            return None;
        }
        self.now = cycle;
        let slot = cycle as usize % SPAN;
        let (first, end) = &mut self.queues[slot];
        let place = *first;
        *first = self.behind[place as usize];
        if *first == NONE {
            *end = NONE;
            self.busy[slot / 64] &= !(1 << (slot % 64));
        }
        self.count -= 1;
        Some(place)
    }

    /// The first cycle with a place.
    fn next(&self) -> Option<u64> {
        let start = self.now as usize % SPAN;
        let (word, bit) = (start / 64, start % 64);
        let ahead = self.busy[word] >> bit;
        if ahead != 0 {
            return Some(self.now + u64::from(ahead.trailing_zeros()));
        }
        // The words after it, and at last its own lower bits, a whole turn ahead.
        (1..=SPAN / 64).find_map(|distance| {
            let ahead = self.busy[(word + distance) % (SPAN / 64)];
            let zeros = u64::from(ahead.trailing_zeros());
            (ahead != 0).then(|| self.now + (distance * 64 - bit) as u64 + zeros)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(wheel: &mut Wheel, last: u64) -> Vec<u32> {
        std::iter::from_fn(|| wheel.take(last)).collect()
    }

    #[test]
    fn places_leave_by_cycle_and_within_one_by_arrival() {
        let mut wheel = Wheel::new();
        wheel.turn_to(1000);
        for (cycle, place) in [(1500, 0), (1030, 1), (1500, 2), (1000, 3), (2023, 4), (1030, 5)] {
            assert!(wheel.reaches(cycle));
            wheel.add(cycle, place);
        }
        assert!(!wheel.reaches(2024));
        assert_eq!(order(&mut wheel, 1499), [3, 1, 5]);
        assert_eq!(order(&mut wheel, 5000), [0, 2, 4]);
        assert!(wheel.is_empty());
    }

    #[test]
    fn late_places_count_as_of_the_present_cycle() {
        let mut wheel = Wheel::new();
        wheel.turn_to(70);
        wheel.add(70, 0);
        wheel.add(80, 1);
        assert_eq!(wheel.take(100), Some(0));
        wheel.add(3, 2);
        assert_eq!(order(&mut wheel, 100), [2, 1]);
    }
}
