//! Progress on work that takes over a second: a bar on a terminal, silence elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long work runs before a bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar over `total` steps that shows itself on a terminal after a second.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: std::time::Instant,
}

impl Progress {
    /// Starts counting; nothing is drawn yet.
    pub(crate) fn new(total: u64, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        Self { bar, started: std::time::Instant::now() }
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        if self.bar.is_hidden() && self.started.elapsed() > PATIENCE {
            // indicatif itself stays silent when stderr is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
