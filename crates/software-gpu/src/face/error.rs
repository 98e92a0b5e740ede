//! What can go wrong when the runtime is started, and how a failed call becomes an HSA status.

use std::path::PathBuf;

use hsa_sys::{HSA_STATUS_ERROR, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_SUCCESS, hsa_status_t};
use wavescope_core::GfxTarget;

/// Why the in-process runtime could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is one runtime per process, and it is running with other options.
    #[error("the in-process runtime of this process is already running; drop its handle first")]
    AlreadyRunning,
    /// No topology is built in for the target.
    #[error("no built-in topology for {target}; pass a topology folder")]
    NoPreset {
        /// What was asked for.
        target: GfxTarget,
    },
    /// The topology cannot be used.
    #[error("topology")]
    Topology(#[from] wavescope_core::Error),
    /// A GPU of the topology cannot be modelled.
    #[error("device")]
    Device(#[from] crate::Error),
    /// More GPUs than access masks can name.
    #[error("a topology with {gpus} GPUs; the in-process runtime takes up to {limit}")]
    TooManyGpus {
        /// GPUs in the topology.
        gpus: usize,
        /// How many are possible.
        limit: usize,
    },
    /// `hsa_init` failed.
    #[error("hsa_init: {0:?}")]
    Init(hsa_status_t),
    /// A variable of the environment holds something that cannot be used.
    #[error("{variable}={value}: {reason}")]
    Environment {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A failed HSA call: the status that the caller gets. Never `HSA_STATUS_SUCCESS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure(pub(super) hsa_status_t);

/// Result of the inside of an API entry.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(super) const ARGUMENT: Self = Self(HSA_STATUS_ERROR_INVALID_ARGUMENT);
    pub(super) const ERROR: Self = Self(HSA_STATUS_ERROR);
}

/// Turns the outcome of an entry into the status it returns.
pub(super) fn status(outcome: Outcome) -> hsa_status_t {
    match outcome {
        Ok(()) => HSA_STATUS_SUCCESS,
        Err(Failure(status)) => status,
    }
}

/// Continues unless a callback of the application asked to stop: its status then is the call's status.
pub(super) fn proceed(status: hsa_status_t) -> Outcome {
    if status == HSA_STATUS_SUCCESS { Ok(()) } else { Err(Failure(status)) }
}
