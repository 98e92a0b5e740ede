//! A list of timed steps with a summary table: what `ci` is made of.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How a step ended when it did not fail.
pub(crate) enum Done {
    /// It ran and passed.
    Passed,
    /// It could not run here; the reason is shown and counts as no failure.
    NotRun(String),
}

enum Outcome {
    Passed,
    NotRun(String),
    /// The first line is for the table; what follows tells more.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::NotRun(reason) => write!(f, "NOT RUN: {reason}"),
            Self::Failed(error) => write!(f, "FAILED: {}", error.lines().next().unwrap_or_default()),
        }
    }
}

struct Step {
    name: String,
    took: Duration,
    outcome: Outcome,
}

/// Runs steps one after the other; a failed one does not keep the next from running.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

impl Steps {
    /// Runs `work` under `name` and prints how long it took.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Done>) {
        eprintln!("\n== {name}");
        let begin = Instant::now();
        let outcome = match work() {
            Ok(Done::Passed) => Outcome::Passed,
            Ok(Done::NotRun(reason)) => Outcome::NotRun(reason),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        let step = Step { name: name.to_owned(), took: begin.elapsed(), outcome };
        eprintln!("== {name}: {} ({:.1} s)", step.outcome, step.took.as_secs_f64());
        self.done.push(step);
    }

    /// Prints the table and the failures at length; an error when any step failed or none was there.
    pub(crate) fn finish(&self) -> Result<()> {
        println!("\n{}\n{}", self.table(), self.failures());
        let failed = self.done.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
        match (failed, self.done.len()) {
            (_, 0) => bail!("no step was run"),
            (0, _) => Ok(()),
            (failed, all) => bail!("{failed} of {all} steps failed"),
        }
    }

    /// What failed, whole: a log that is cut to its end still tells why.
    fn failures(&self) -> String {
        let failure = |step: &Step| match &step.outcome {
            Outcome::Failed(error) => Some(format!("\n== {} failed\n{error}\n", step.name)),
            _ => None,
        };
        self.done.iter().filter_map(failure).collect()
    }

    fn table(&self) -> String {
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or(0);
        let row = |step: &Step| {
            format!("{:width$}  {:>8.1} s  {}\n", step.name, step.took.as_secs_f64(), step.outcome)
        };
        let total: Duration = self.done.iter().map(|step| step.took).sum();
        let rows: String = self.done.iter().map(row).collect();
        format!("{rows}{:width$}  {:>8.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_whole_and_the_rest_still_runs() {
        let mut steps = Steps::default();
        steps.step("first", || bail!("broken"));
        steps.step("second", || Ok(Done::Passed));
        assert_eq!(steps.done.len(), 2);
        assert_eq!(steps.finish().unwrap_err().to_string(), "1 of 2 steps failed");
        assert!(steps.table().contains("FAILED: broken"));
    }

    #[test]
    fn a_failure_of_many_lines_is_one_line_of_the_table_and_whole_below_it() {
        let mut steps = Steps::default();
        steps.step("tests", || bail!("two failed\nfirst\nsecond"));
        assert!(steps.table().contains("FAILED: two failed\n"), "{}", steps.table());
        assert!(!steps.table().contains("second"));
        assert!(steps.failures().contains("== tests failed\ntwo failed\nfirst\nsecond\n"));
    }

    #[test]
    fn a_step_that_cannot_run_here_is_shown_and_is_no_failure() {
        let mut steps = Steps::default();
        steps.step("capture", || Ok(Done::NotRun("no ../shared".into())));
        assert!(steps.finish().is_ok());
        assert!(steps.table().contains("NOT RUN: no ../shared"));
    }

    #[test]
    fn no_step_at_all_is_an_error() {
        assert!(Steps::default().finish().is_err());
    }
}
