//! `cargo xtask golden`: checks fixtures against the code, whole folders or single files.
//!
//! `golden check KIND PATH` finds every case below PATH, checks each, prints each difference and ends with
//! `N passed, M failed`. It fails when a case failed, when there was no case, and when a file belongs to the
//! kind's schema but cannot be checked yet ([`Role::NotCovered`]): what was skipped must not look like a pass.
//!
//! Adding a kind: a file here with a unit struct that implements [`Kind`], and one line in [`KINDS`].

mod abi;
mod aqlprofile;
mod counters;
mod report;
mod source;
mod sqtt;
mod sqtt_encode;
mod sqtt_walk;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub(crate) use report::{Outcome, Tally};
pub(crate) use source::{Source, read_text};

use crate::paths;
use crate::steps::Done;

/// Every kind that `golden check` knows.
pub(crate) const KINDS: &[&dyn Kind] = &[
    &abi::Abi,
    &aqlprofile::AqlProfile,
    &counters::Counters,
    &sqtt::Sqtt,
    &sqtt_encode::SqttEncode,
    &sqtt_walk::SqttWalk,
];

/// One kind of golden: how its cases look on disk and how one is checked.
pub(crate) trait Kind: Sync {
    /// What is typed on the command line.
    fn name(&self) -> &'static str;

    /// What `file` (found below the given folder, or given itself) is to this kind.
    fn role(&self, file: &Path) -> Role;

    /// Checks one case: every difference goes into the outcome, which also counts the comparisons made.
    ///
    /// # Errors
    /// The case cannot be read or is malformed. It counts as failed, the run goes on.
    fn check(&self, case: &Path) -> Result<Outcome>;

    /// What `cargo xtask ci` checks of this kind: empty until the kind is finished.
    fn ci_sources(&self) -> Vec<Source> {
        Vec::new()
    }

    /// Writes this kind's goldens that live in the repository anew and returns their paths.
    ///
    /// # Errors
    /// The kind has none, or they cannot be written.
    fn bless(&self) -> Result<Vec<PathBuf>> {
        bail!("kind `{}` has no goldens in the repository", self.name())
    }
}

/// What one file is to a [`Kind`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A case: it is checked. Where a case is several files, exactly one of them (the expectation) says this.
    Case,
    /// Part of a case (a trace beside its expectation), or no file of the schema (a README).
    Support,
    /// A file of the schema that nothing here can check, with the reason. It makes the run fail.
    NotCovered(String),
}

/// Options of `golden`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Checks every case of KIND below PATH (a folder or one file)
    Check {
        /// abi, counters, aqlprofile, sqtt, sqtt-encode or sqtt-walk
        kind: String,
        /// A folder, searched to the bottom, or one file
        path: PathBuf,
    },
    /// Writes our own goldens anew (of KIND, or of all kinds that have some); review the diff
    Bless {
        /// abi, counters, aqlprofile, sqtt, sqtt-encode or sqtt-walk
        kind: Option<String>,
    },
}

/// Checks or blesses.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Check { kind, path } => check(find(kind)?, path),
        Command::Bless { kind: Some(kind) } => bless(find(kind)?),
        Command::Bless { kind: None } => bless_all(),
    }
}

/// Checks a kind's source of `ci`: the captured one where it is present, else the repository's own copy.
pub(crate) fn check_source(kind: &dyn Kind, source: &Source) -> Result<Done> {
    match source.locate() {
        Ok(path) => check(kind, &path).map(|()| Done::Passed),
        Err(reason) => Ok(Done::NotRun(reason)),
    }
}

fn find(name: &str) -> Result<&'static dyn Kind> {
    let kind = KINDS.iter().find(|kind| kind.name() == name);
    kind.copied().with_context(|| {
        let known: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
        format!("golden kind `{name}` is not implemented; implemented: {}", known.join(", "))
    })
}

fn check(kind: &dyn Kind, path: &Path) -> Result<()> {
    let tally = tally(kind, path)?;
    println!("{tally}");
    tally.verdict()
}

fn tally(kind: &dyn Kind, path: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    for file in source::files_below(path)? {
        match kind.role(&file) {
            Role::Case => tally.add(&paths::display(&file), kind.check(&file)),
            Role::NotCovered(reason) => tally.add_not_covered(&paths::display(&file), &reason),
            Role::Support => {}
        }
    }
    Ok(tally)
}

fn bless(kind: &dyn Kind) -> Result<()> {
    for written in kind.bless()? {
        println!("wrote {}", paths::display(&written));
    }
    Ok(())
}

fn bless_all() -> Result<()> {
    for kind in KINDS {
        if let Err(reason) = bless(*kind) {
            println!("{}: {reason:#}", kind.name());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
