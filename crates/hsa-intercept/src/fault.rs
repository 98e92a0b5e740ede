//! Switches that break one step, for the broken twins of loom models. Absent from any other build.

/// A step that can be left out.
#[cfg_attr(not(loom), expect(unreachable_pub, reason = "models switch it from outside"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A swap of subscribers does not wait for hooks that still use the old ones.
    SwapWithoutWait,
    /// Silencing a subscriber gives back its hold at once, not after the drain.
    HoldReturnedWhenSilent,
    /// A dispatch counts as drained before it is published.
    LandedBeforePublished,
    /// Signals of a destroyed queue are freed at once, while the reaper may still look at them.
    SignalsFreedByDestroyer,
    /// A subscription is admitted by what was known before its turn came.
    SubscribedAfterShutDown,
    /// Grants come back only to subscriptions that have not left.
    GrantsForgottenWhenLeft,
    /// A lane is free for the next queue before its gate was taken away.
    LaneFreedBeforeGate,
    /// A batch is listed as in flight only after it was handed to the queue.
    ListedAfterWritten,
    /// A farewell destroys the bell itself, though the reaper may wait for it.
    BellDroppedBesideReaper,
    /// The bell is destroyed though it was handed to a queue that is not listed yet.
    BellDroppedWhileHanded,
    /// A farewell that waits for the bell's end is not told that a queue took the bell.
    BellHandedUnheard,
    /// The first farewell that is over ends all of them.
    FarewellEndsOthers,
    /// A farewell that waits for the bell's end is not told that it came with the reaper's.
    BellEndedUnheard,
    /// A reaper that was stopped before it began counts as begun.
    ReaperBegunToEnd,
    /// A caller asks whether the gate is shut before it counts as inside.
    GateAskedBeforeCounted,
    /// What a caller did inside the gate is not ordered before what follows its leaving.
    GateLeftUnordered,
    /// Whoever waits at the gate is not told that it opened.
    GateOpenedUnheard,
    /// A thread of ours that was called by the application waits at the gate.
    ExemptWaitAtGate,
    /// Whoever enters does so without a barrier.
    PinnedWithoutBarrier,
    /// What was done in one visit is not ordered before the next.
    VisitUnordered,
    /// Who is inside is asked before the front is taken out of the table.
    UsersAskedBeforeTakenOut,
    /// A search does not ask again whether the key is still there.
    KeyAskedOnce,
    /// A front ends though somebody reads it.
    EndedBesideReader,
    /// The end is left to a reader that is gone.
    EndLeftToNobody,
}

wavescope_core::fault_switch!(Fault);
