//! A queue that is nearly always empty or nearly so.

/// Items in order of arrival. Cheaper than a ring, since the list starts anew whenever it runs empty.
#[derive(Debug, Clone)]
pub(super) struct Fifo<T> {
    items: Vec<T>,
    head: usize,
}

/// Items already taken that may stay in the list.
const MAX_TAKEN: usize = 1024;

impl<T: Copy> Fifo<T> {
    pub(super) const fn new() -> Self {
        Fifo { items: Vec::new(), head: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.head = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    #[inline]
    pub(super) fn first(&self) -> Option<T> {
        self.items.get(self.head).copied()
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.first()?;
        self.head += 1;
        if self.head == self.items.len() {
            self.clear();
        } else if self.head == MAX_TAKEN {
            self.items.drain(..MAX_TAKEN);
            self.head = 0;
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_over_many_rounds() {
        let mut fifo = Fifo::new();
        let mut next = 0;
        for round in 0..5000 {
            fifo.push(2 * round);
            fifo.push(2 * round + 1);
            if round % 3 > 0 {
                assert_eq!(fifo.first(), Some(next));
                assert_eq!(fifo.pop(), Some(next));
                next += 1;
            }
        }
        assert!(fifo.items.len() < 2 * 5000 - next + MAX_TAKEN);
        while let Some(item) = fifo.pop() {
            assert_eq!(item, next);
            next += 1;
        }
        assert_eq!((next, fifo.items.len()), (10_000, 0));
    }
}
