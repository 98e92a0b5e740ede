//! How packets are intercepted.

use std::str::FromStr;

/// The two ways in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Technique {
    /// The runtime's own intercept queues. On ROCr 7.2.4 an application crashes that has more than 256 packets waiting
    /// where its ring wraps, and the runtime's event thread never sleeps. A forked child that rings its parent's queue ends
    /// by SIGSEGV, as it does with any queue of that runtime.
    Runtime,
    /// Our own queue fronts. A forked child that rings its parent's queue harms nobody.
    Doorbell,
}

impl Technique {
    /// Environment variable that chooses: `runtime`, `doorbell` or `auto`.
    pub const VARIABLE: &str = "WAVESCOPE_INTERCEPT";

    /// What `auto` means.
    ///
    /// Doorbell: batches of any length, and no thread of the runtime involved. It is not a matter of cost: in `docs/cost.md`
    /// of this crate the two are nearer to each other than runs of one of them.
    pub const AUTO: Self = Self::Doorbell;

    /// What the environment asks for; a value without a meaning is logged and counts as `auto`.
    pub fn from_environment() -> Self {
        let Ok(value) = std::env::var(Self::VARIABLE) else { return Self::AUTO };
        value.parse().unwrap_or_else(|()| {
            tracing::error!(variable = Self::VARIABLE, value, "none of runtime, doorbell, auto");
            Self::AUTO
        })
    }
}

impl FromStr for Technique {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "runtime" => Ok(Self::Runtime),
            "doorbell" => Ok(Self::Doorbell),
            "auto" | "" => Ok(Self::AUTO),
            _ => Err(()),
        }
    }
}
