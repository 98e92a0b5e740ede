//! Performance samples in a gfx9 trace: counters of each compute unit, read at a fixed interval.
//!
//! Up to eight selected SQ events make two banks of four. Each interval gives one PERF token for every unit and bank that
//! counted anything (a decoder puts zeros where one is missing), four cycles later for each unit, so that the tokens of one
//! sample follow each other. Where a wave is and what it executes is fixed when it is placed, so its share of each interval
//! is added then.

use std::collections::BTreeMap;

use super::event::Event;
use crate::counters::{Executed, Quantity};
use crate::place::Wave;
use crate::walk::Timed;

/// Counters of a bank.
const BANK: usize = 4;
/// Cycles between the tokens of neighbouring units.
const STAGGER: u64 = 4;

/// What is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Cycles between samples.
    pub(crate) interval: u64,
    /// Compute units.
    pub(crate) units: u32,
    /// By counter; `None` for an event that is not modelled.
    pub(crate) events: Vec<Option<Quantity>>,
}

impl Plan {
    /// Cycles between samples: the hardware reads one counter of one unit at a time, once in each period.
    pub(crate) fn interval(units_of_engine: u32, counters: usize, period: u32) -> u64 {
        let counters = counters.next_multiple_of(BANK) as u64;
        u64::from(1 + units_of_engine) * counters * u64::from(period)
    }
}

/// Samples of one engine.
#[derive(Debug)]
pub(crate) struct Samples {
    plan: Plan,
    from: u64,
    /// Sums by interval and unit.
    sums: BTreeMap<(u64, u8), Vec<u64>>,
}

impl Samples {
    pub(crate) fn new(plan: Plan, from: u64) -> Self {
        Self { plan, from, sums: BTreeMap::new() }
    }

    /// Adds a wave on compute unit `unit`.
    pub(crate) fn add(&mut self, unit: u8, wave: &Wave, walk: &Timed) {
        if self.plan.units >> unit & 1 == 0 || wave.end <= self.from {
            return;
        }
        let interval = self.plan.interval;
        let (first, last) = (wave.start.max(self.from) - self.from, wave.end - 1 - self.from);
        for number in first / interval..=last / interval {
            let begin = self.from + number * interval;
            let (from, to) = (wave.start.max(begin), wave.end.min(begin + interval));
            let mut executed = Executed::default();
            *executed.of_size(wave.size) += walk.counts_between(from - wave.start, to - wave.start);
            let share = |quantity: &Quantity| match quantity {
                Quantity::Instructions(kind) => executed.count(*kind),
                Quantity::Waves => u64::from(from == wave.start),
                Quantity::WaveCycles(unit) => (to - from) / unit,
                _ => 0,
            };
            let shares = self.plan.events.iter().map(|event| event.as_ref().map_or(0, share));
            let sums = self.sums.entry((number, unit)).or_insert_with(|| vec![0; self.plan.events.len()]);
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
    }

    /// Reports the samples that are due at `cycle`.
    pub(crate) fn take(&mut self, cycle: u64, report: impl FnMut(u64, Event)) {
        let whole = (cycle.saturating_sub(self.from) / self.plan.interval).saturating_sub(1);
        let later = self.sums.split_off(&(whole, 0));
        let due = std::mem::replace(&mut self.sums, later);
        self.report(due, u64::MAX, report);
    }

    /// The same for what has been counted when the trace ends at `cycle`.
    pub(crate) fn finish(mut self, cycle: u64, report: impl FnMut(u64, Event)) {
        let begun = (cycle - self.from) / self.plan.interval;
        self.sums.split_off(&(begun + 1, 0));
        let rest = std::mem::take(&mut self.sums);
        self.report(rest, cycle, report);
    }

    fn report(&self, sums: BTreeMap<(u64, u8), Vec<u64>>, latest: u64, mut report: impl FnMut(u64, Event)) {
        for ((number, unit), sums) in sums {
            let due = self.from + (number + 1) * self.plan.interval + STAGGER * u64::from(unit);
            for (bank, sums) in
                (0..).zip(sums.chunks(BANK)).filter(|(_, sums)| sums.iter().any(|&sum| sum > 0))
            {
                let mut counters = [0; BANK];
                // 13 bits.
                counters.iter_mut().zip(sums).for_each(|(counter, &sum)| *counter = sum.min(0x1FFF) as u16);
                report(due.min(latest), Event::Sample { unit, bank, counters });
            }
        }
    }
}
