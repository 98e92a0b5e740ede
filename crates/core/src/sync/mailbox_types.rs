//! What both mailboxes, the real and the modelled one, speak in.

/// How many messages a mailbox holds.
///
/// The places are apart so that a client that floods the mailbox cannot take away what a token owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Places of requests: a sender waits, or is refused, when they are taken. At least 1.
    pub requests: usize,
    /// Places of notices: each is owned by something in flight, so that sending one never waits.
    pub notices: usize,
}

/// Why a message was not taken; it is handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError<T> {
    /// All places are taken. For a notice this means that a sender used a place it does not own.
    #[error("the mailbox is full")]
    Full(T),
    /// The receiver is gone or the mailbox was closed.
    #[error("the mailbox is closed")]
    Closed(T),
}

/// Why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvError {
    /// None came in time.
    #[error("no message yet")]
    Empty,
    /// None will come any more.
    #[error("the mailbox is closed")]
    Closed,
}
