//! Packets that were begun and whose completion is still to come.

use crate::signal::Span;

/// A completion to be delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    /// Index of the packet.
    pub(super) packet: u64,
    pub(super) signal: u64,
    pub(super) span: Span,
    /// Tick from which it may be delivered.
    pub(super) due: u64,
    /// Held back until this packet has completed.
    pub(super) after: Option<u64>,
    /// Whether a barrier waits for it: not when a fault only keeps its signal back.
    pub(super) blocks: bool,
}

/// The completions of one queue.
#[derive(Debug, Default)]
pub(super) struct Inflight {
    completions: Vec<Completion>,
}

impl Inflight {
    pub(super) fn push(&mut self, completion: Completion) {
        self.completions.push(completion);
    }

    /// Whether a barrier has to wait.
    pub(super) fn blocks(&self) -> bool {
        self.completions.iter().any(|completion| completion.blocks)
    }

    /// The tick at which the next completion is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.completions.iter().filter(|completion| completion.after.is_none()).map(|c| c.due).min()
    }

    /// Takes the earliest completion that is due, the older packet first among equals.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Completion> {
        let ready = |c: &&(usize, &Completion)| c.1.after.is_none() && c.1.due <= now;
        let all = self.completions.iter().enumerate();
        let (index, _) = all.filter(|c| ready(&c)).min_by_key(|(_, c)| (c.due, c.packet))?;
        Some(self.completions.remove(index))
    }

    /// Lets go what waited for `packet`.
    pub(super) fn completed(&mut self, packet: u64, now: u64) {
        for completion in self.completions.iter_mut().filter(|c| c.after == Some(packet)) {
            completion.after = None;
            completion.due = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(packet: u64, due: u64) -> Completion {
        Completion { packet, signal: 0, span: Span { start: 0, end: due }, due, after: None, blocks: true }
    }

    #[test]
    fn completions_leave_in_order_of_their_end() {
        let mut inflight = Inflight::default();
        [completion(0, 30), completion(1, 10), completion(2, 30)].into_iter().for_each(|c| inflight.push(c));
        assert_eq!(inflight.next_due(), Some(10));
        let order: Vec<u64> = std::iter::from_fn(|| inflight.take_due(30)).map(|c| c.packet).collect();
        assert_eq!(order, [1, 0, 2]);
    }

    #[test]
    fn a_held_completion_waits_for_its_successor() {
        let mut inflight = Inflight::default();
        inflight.push(Completion { after: Some(1), ..completion(0, 5) });
        assert!(inflight.take_due(100).is_none());
        inflight.completed(1, 50);
        assert_eq!(inflight.take_due(50).map(|c| c.packet), Some(0));
    }
}
