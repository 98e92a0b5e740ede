//! How a twin of a model runs: for models with and without a device.

use std::time::Duration;

use wavescope_hsa_intercept::fault::{self, Fault};

/// Time does not pass in a model.
pub(crate) const NEVER: Duration = Duration::from_secs(1);

/// Runs a model with one step of the product switched.
pub(crate) fn broken(fault: Fault, body: fn()) {
    fault::set(fault);
    loom::model(body);
}
