//! Progress on work that takes over a second: a bar on a terminal, silence elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long work runs before a bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar over `total` steps that shows itself on a terminal after a second.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    shows: bool,
    started: std::time::Instant,
}

impl Progress {
    /// Starts counting; nothing is drawn yet.
    pub(crate) fn new(total: u64, what: &'static str) -> Self {
        Self::with_style(total, what, "{msg} {bar:30} {pos}/{len} {eta}")
    }

    /// The same over bytes, beside lines on standard output: no bar stands between those on one terminal.
    pub(crate) fn of_bytes(total: u64, what: &'static str) -> Self {
        let progress = Self::with_style(total, what, "{msg} {bar:30} {bytes}/{total_bytes} {eta}");
        progress.shown_if(!std::io::stdout().is_terminal())
    }

    fn with_style(total: u64, what: &'static str, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()).with_message(what);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, shows: true, started: std::time::Instant::now() }
    }

    fn shown_if(mut self, shows: bool) -> Self {
        self.shows = shows;
        self
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.advance(1);
    }

    /// So many steps are done.
    pub(crate) fn advance(&self, steps: u64) {
        if self.shows && self.bar.is_hidden() && self.started.elapsed() > PATIENCE {
            // indicatif itself stays silent when stderr is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
