//! Counting and printing: the outcome of one case, and the tally of a run.

use std::fmt;

use anyhow::{Result, bail};

/// Differences printed for one case; the rest are only counted.
const SHOWN_DIFFERENCES: usize = 40;

/// What comparing one case gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    comparisons: usize,
    differences: Vec<String>,
}

impl Outcome {
    /// Compares one value; `place` says where it stands, e.g. `structs.hsa_queue_t.size`.
    pub(crate) fn compare<T: PartialEq + fmt::Debug + ?Sized>(
        &mut self,
        place: impl fmt::Display,
        expected: &T,
        found: &T,
    ) {
        if expected == found {
            self.equal(1);
        } else {
            self.differ(place, format_args!("expected {expected:?}, found {found:?}"));
        }
    }

    /// Counts comparisons that were made elsewhere and found equal.
    pub(crate) fn equal(&mut self, comparisons: usize) {
        self.comparisons += comparisons;
    }

    /// Counts one comparison that failed for a reason of its own, e.g. something that is missing.
    pub(crate) fn differ(&mut self, place: impl fmt::Display, what: impl fmt::Display) {
        self.comparisons += 1;
        self.differences.push(format!("{place}: {what}"));
    }

    /// How many values were compared.
    #[cfg(test)]
    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// The differences, in the order found.
    #[cfg(test)]
    pub(crate) fn differences(&self) -> &[String] {
        &self.differences
    }
}

/// Passed and failed cases of one run. Printing gives the closing line.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: usize,
    not_covered: usize,
}

impl Tally {
    /// Counts one case and prints what is wrong with it. A case that compared nothing has failed.
    pub(crate) fn add(&mut self, case: &str, outcome: Result<Outcome>) {
        let lines = match &outcome {
            Ok(outcome) if outcome.comparisons == 0 => vec!["nothing was compared".to_owned()],
            Ok(outcome) => outcome.differences.clone(),
            Err(error) => vec![format!("{error:#}")],
        };
        if lines.is_empty() {
            self.passed += 1;
            return;
        }
        self.failed += 1;
        println!("FAIL {case}: {} differences", lines.len());
        for line in lines.iter().take(SHOWN_DIFFERENCES) {
            println!("  {line}");
        }
        if lines.len() > SHOWN_DIFFERENCES {
            println!("  ... and {} more", lines.len() - SHOWN_DIFFERENCES);
        }
    }

    /// Counts a file of the schema that cannot be checked: a failure.
    pub(crate) fn add_not_covered(&mut self, file: &str, reason: &str) {
        self.failed += 1;
        self.not_covered += 1;
        println!("FAIL {file}: not covered yet: {reason}");
    }

    /// The result of the run as an error or none.
    ///
    /// # Errors
    /// A case failed, a file of the schema was skipped, or there was no case.
    pub(crate) fn verdict(&self) -> Result<()> {
        match (self.passed, self.failed) {
            (0, 0) => bail!("no case found"),
            (_, 0) => Ok(()),
            (_, failed) => bail!("{failed} failed, {} of them not covered yet", self.not_covered),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}
