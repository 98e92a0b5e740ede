//! What the owner and the services name things by.

use std::fmt;

use wavescope_core::{ContextId, Token};

/// One trace of one context: a dispatch, or the time between a start and a stop of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId {
    /// Whose trace.
    pub context: ContextId,
    /// Which of the context's traces on the agent.
    pub token: Token,
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {}.{} of {}", self.token.index, self.token.generation, self.context)
    }
}

/// One of the buffers that an agent's contexts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferId {
    /// GPU memory that traces are written to.
    Output(u32),
    /// Host memory that full buffers are copied to.
    Staging(u32),
}

impl fmt::Display for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(slot) => write!(f, "output slot {slot}"),
            Self::Staging(slot) => write!(f, "staging slot {slot}"),
        }
    }
}
