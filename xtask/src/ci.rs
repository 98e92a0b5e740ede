//! `cargo xtask ci [--long]`: everything that a change must pass, in the order of what fails soonest.

use anyhow::Result;

use crate::process::{cargo, run as execute};
use crate::steps::{Done, Steps};
use crate::{codegen, edges, fuzz, loom, metrics, on_rocr, test};

/// Options of `ci`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also what is too slow for each change: loom at preemption bound 3, fuzzing; and the ROCm userland must be there
    #[arg(long)]
    long: bool,
}

/// The preemption bound of `--long`: a release's.
const LONG_PREEMPTIONS: u32 = 3;

/// Runs every step, prints the table, fails if one failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("format", || passed(execute(&mut cargo(["fmt", "--all", "--check"]))));
    steps.step("dependency edges", || passed(edges::check()));
    steps.step("generated files", || passed(codegen::check()));
    steps.step("dependency policy", dependency_policy);
    steps.step("clippy", || passed(clippy(&["--workspace"])));
    steps.step("clippy, all features", || passed(clippy(&["--workspace", "--all-features"])));
    // What `codegen` falls back on when a generated file does not compile.
    steps.step("clippy, xtask alone", || passed(clippy(&["--package", "xtask", "--no-default-features"])));
    if args.long {
        // Without it the tests on the real runtime say NOT RUN and pass: here that is a failure.
        steps.step("ROCm userland", || passed(on_rocr::check()));
    }
    steps.step("tests", || passed(test::nextest(&[])));
    steps.step("doc tests", || passed(test::doc_tests(&[])));
    steps.step("docs", || passed(docs()));
    #[cfg(feature = "golden")]
    golden_steps(&mut steps);
    let preemptions = if args.long { LONG_PREEMPTIONS } else { loom::DEFAULT_PREEMPTIONS };
    steps.step(&format!("loom, {preemptions} preemptions"), || loom::run_all(preemptions));
    if args.long {
        steps.step(&format!("fuzz, {} s each", fuzz::CI_SECONDS), || fuzz::run_all(fuzz::CI_SECONDS));
    }
    steps.step("style metrics", || metrics::measure(&[]));
    steps.finish()
}

fn passed(result: Result<()>) -> Result<Done> {
    result.map(|()| Done::Passed)
}

fn clippy(selection: &[&str]) -> Result<()> {
    execute(cargo(["clippy"]).args(selection).args(["--all-targets", "--", "-D", "warnings"]))
}

/// Licences, bans and sources by `deny.toml`; advisories would need a network.
fn dependency_policy() -> Result<Done> {
    if execute(&mut cargo(["deny", "--version"])).is_err() {
        return Ok(Done::NotRun("cargo-deny is not installed".into()));
    }
    passed(execute(&mut cargo(["deny", "check", "licenses", "bans", "sources"])))
}

fn docs() -> Result<()> {
    execute(cargo(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"))
}

#[cfg(feature = "golden")]
fn golden_steps(steps: &mut Steps) {
    use crate::golden;
    for kind in golden::KINDS {
        for source in kind.ci_sources() {
            let name = format!("golden {} {}", kind.name(), source.shown());
            steps.step(&name, || golden::check_source(*kind, &source));
        }
    }
}
