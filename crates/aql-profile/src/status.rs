//! HSA status codes, as the packet API answers them.

use std::fmt;

/// An `hsa_status_t` (`hsa.h`), unknown values kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(pub u32);

impl Status {
    /// `HSA_STATUS_SUCCESS`.
    pub const SUCCESS: Self = Self(0);
    /// `HSA_STATUS_INFO_BREAK`: a callback asks an iteration to end.
    pub const INFO_BREAK: Self = Self(1);
    /// `HSA_STATUS_ERROR`.
    pub const ERROR: Self = Self(0x1000);
    /// `HSA_STATUS_ERROR_INVALID_ARGUMENT`.
    pub const INVALID_ARGUMENT: Self = Self(0x1001);
    /// `HSA_STATUS_ERROR_OUT_OF_RESOURCES`.
    pub const OUT_OF_RESOURCES: Self = Self(0x1008);
    /// `HSA_STATUS_ERROR_EXCEPTION`.
    pub const EXCEPTION: Self = Self(0x1016);

    /// Whether it is [`Status::SUCCESS`].
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SUCCESS => f.write_str("success"),
            Self::INFO_BREAK => f.write_str("break"),
            Self::ERROR => f.write_str("error"),
            Self::INVALID_ARGUMENT => f.write_str("invalid argument"),
            Self::OUT_OF_RESOURCES => f.write_str("out of resources"),
            Self::EXCEPTION => f.write_str("exception"),
            Self(other) => write!(f, "status {other:#x}"),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#x})", self.0)
    }
}
