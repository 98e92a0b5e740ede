//! Record streams to clients in Rust: bounded, received by blocking or in async code.
//!
//! ```
//! use wavescope_core::{Overflow, record_stream};
//!
//! let (sink, records) = record_stream(1, Overflow::DropNewest);
//! assert!(sink.send("kept"));
//! assert!(!sink.send("dropped"));
//! assert_eq!((records.recv(), records.lost()), (Some("kept"), 1));
//! drop(sink);
//! assert_eq!(records.recv(), None);
//! ```

use std::future::Future;
use std::time::Duration;

use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What a full stream does with the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The sender waits: nothing is lost, and a client that stops reading stops the delivering worker.
    Block,
    /// The new record is dropped and counted in [`Records::lost`].
    DropNewest,
}

/// Makes a stream of at most `capacity` waiting records.
pub fn record_stream<T>(capacity: usize, overflow: Overflow) -> (RecordSink<T>, Records<T>) {
    let (sender, receiver) = flume::bounded(capacity);
    let lost = Arc::new(AtomicU64::new(0));
    (RecordSink { sender, overflow, lost: Arc::clone(&lost) }, Records { receiver, lost })
}

/// The engine's end of a stream.
#[derive(Debug)]
pub struct RecordSink<T> {
    sender: flume::Sender<T>,
    overflow: Overflow,
    lost: Arc<AtomicU64>,
}

impl<T> RecordSink<T> {
    /// Delivers one record by the stream's policy. Returns whether the client can still get it: a record is
    /// counted as lost when the stream is full or the client dropped its end.
    pub fn send(&self, record: T) -> bool {
        let sent = match self.overflow {
            Overflow::Block => self.sender.send(record).is_ok(),
            Overflow::DropNewest => self.sender.try_send(record).is_ok(),
        };
        if !sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl<T> Clone for RecordSink<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), overflow: self.overflow, lost: Arc::clone(&self.lost) }
    }
}

/// The client's end of a stream.
#[derive(Debug)]
pub struct Records<T> {
    receiver: flume::Receiver<T>,
    lost: Arc<AtomicU64>,
}

impl<T> Records<T> {
    /// Waits for the next record; `None` when the sender is gone and everything was received.
    pub fn recv(&self) -> Option<T> {
        self.receiver.recv().ok()
    }

    /// Waits at most `timeout`; `None` also when nothing came.
    pub fn recv_timeout(&self, timeout: Duration) -> Option<T> {
        self.receiver.recv_timeout(timeout).ok()
    }

    /// The next record if one is there.
    pub fn try_recv(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    /// Waits in async code; `None` as for [`recv`](Self::recv).
    pub fn recv_async(&self) -> impl Future<Output = Option<T>> + '_ {
        let next = self.receiver.recv_async();
        async { next.await.ok() }
    }

    /// Records until the sender is gone.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.receiver.iter()
    }

    /// Records lost so far. Received + waiting + lost = sent.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn received_and_lost_add_up_to_sent() {
        let (sink, records) = record_stream(3, Overflow::DropNewest);
        let kept = (0..10).filter(|&value| sink.send(value)).count();
        drop(sink);
        assert_eq!(records.iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((kept, records.lost()), (3, 7));
    }

    #[test]
    fn blocking_stream_loses_nothing_to_a_slow_client() {
        let (sink, records) = record_stream(1, Overflow::Block);
        let sender = crate::sync::thread::spawn(move || (0..100).for_each(|value| assert!(sink.send(value))));
        assert_eq!(records.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        sender.join().unwrap();
        assert_eq!(records.lost(), 0);
    }

    #[test]
    fn client_that_left_never_blocks_the_sender() {
        let (sink, records) = record_stream(1, Overflow::Block);
        drop(records);
        assert!(!sink.send(1));
        assert_eq!(sink.lost(), 1);
    }

    #[test]
    fn async_receive_is_pending_until_a_record_comes() {
        let (sink, records) = record_stream(1, Overflow::Block);
        let mut next = pin!(records.recv_async());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(next.as_mut().poll(&mut cx), Poll::Pending);
        sink.send(5);
        assert_eq!(next.as_mut().poll(&mut cx), Poll::Ready(Some(5)));
    }
}
