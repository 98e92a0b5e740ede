//! Since when packets that a queue has not come to yet have been waiting: rung for and written.
//!
//! The model may take longer for a kernel than the kernel lasts, so that the next one's launch lies in the past of the
//! host's clock. It must not lie before that kernel was there: who submits a kernel may have seen others complete first.
//! [`Arrivals`] knows ticks and indices, and nothing of packets.

use std::collections::VecDeque;

/// Notes of how far the ring was filled at which tick. Both grow.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    notes: VecDeque<Note>,
}

/// Packets below an index were waiting at a tick, from the note before on.
#[derive(Debug)]
struct Note {
    until: u64,
    tick: u64,
}

impl Arrivals {
    /// A tick at which the packet was waiting, if that was noted. Forgets the packets before it.
    pub(super) fn take(&mut self, packet: u64) -> Option<u64> {
        while self.notes.pop_front_if(|note| note.until <= packet).is_some() {}
        self.notes.front().map(|note| note.tick)
    }

    /// The first packet behind `packet` of which nothing is noted.
    pub(super) fn unknown(&self, packet: u64) -> u64 {
        self.notes.back().map_or(packet + 1, |note| note.until)
    }

    /// Notes that the packets from [`Arrivals::unknown`] to `until`, exclusive, are waiting.
    pub(super) fn note(&mut self, until: u64, tick: u64) {
        self.notes.push_back(Note { until, tick });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_has_the_tick_of_the_note_that_first_covers_it() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.take(0), arrivals.unknown(0)), (None, 1));
        arrivals.note(3, 100);
        assert_eq!((arrivals.take(1), arrivals.unknown(1)), (Some(100), 3));
        arrivals.note(4, 200);
        let ticks: Vec<_> = (2..5).map(|packet| arrivals.take(packet)).collect();
        assert_eq!(ticks, [Some(100), Some(200), None]);
        assert_eq!(arrivals.unknown(4), 5);
    }
}
