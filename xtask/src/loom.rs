//! `cargo xtask loom [GROUP] [--preemptions N]`: runs the loom models, group by group.
//!
//! A group is one crate's set of `tests/loom_*.rs` files. Loom builds differ from all others by
//! `--cfg loom`, so they have a target folder of their own and do not throw away the normal one.

use anyhow::{Result, bail};

use crate::paths;
use crate::process::{cargo, run as execute};
use crate::steps::Done;

/// One group of models.
struct Group {
    /// What is typed on the command line.
    name: &'static str,
    /// The package that holds them.
    package: &'static str,
    /// Its folder, relative to the workspace root.
    folder: &'static str,
}

/// Every group: a crate whose `tests/` has `loom_*.rs` files must stand here (a test checks it).
const GROUPS: &[Group] = &[
    Group { name: "core", package: "wavescope-core", folder: "crates/core" },
    Group { name: "att-resources", package: "wavescope-att-resources", folder: "crates/att-resources" },
    Group { name: "hsa-intercept", package: "wavescope-hsa-intercept", folder: "crates/hsa-intercept" },
];

/// The bound of every change; a release takes 3.
pub(crate) const DEFAULT_PREEMPTIONS: u32 = 2;

/// Options of `loom`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One group (default: all): core, att-resources, hsa-intercept
    group: Option<String>,
    /// How often a thread may be interrupted where it need not be
    #[arg(long, default_value_t = DEFAULT_PREEMPTIONS)]
    preemptions: u32,
}

/// Runs the named group, or all; a named group without models is an error.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(name) = &args.group else {
        if let Done::NotRun(reason) = run_all(args.preemptions)? {
            println!("NOT RUN: {reason}");
        }
        return Ok(());
    };
    let Some(group) = GROUPS.iter().find(|group| group.name == name) else {
        let known: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
        bail!("no loom group `{name}`; known: {}", known.join(", "));
    };
    run_group(group, args.preemptions)
}

/// Runs every group that has models.
pub(crate) fn run_all(preemptions: u32) -> Result<Done> {
    let groups: Vec<_> = GROUPS.iter().filter(|group| !models(group.folder).is_empty()).collect();
    if groups.is_empty() {
        return Ok(Done::NotRun("no crate has a tests/loom_*.rs yet".into()));
    }
    for group in groups {
        run_group(group, preemptions)?;
    }
    Ok(Done::Passed)
}

fn run_group(group: &Group, preemptions: u32) -> Result<()> {
    let models = models(group.folder);
    if models.is_empty() {
        bail!("loom group `{}` has no model: {}/tests/loom_*.rs does not exist", group.name, group.folder);
    }
    let mut command =
        cargo(["test", "--profile", "loom", "--package", group.package, "--target-dir", "target/loom"]);
    for model in &models {
        command.args(["--test", model]);
    }
    // The models print how many schedules they explored: `--nocapture` shows it.
    command.args(["--", "--nocapture", "--test-threads=1"]);
    command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", preemptions.to_string());
    // Each broken twin panics on purpose: a hundred lines of backtrace for each would hide a real failure.
    command.env("RUST_BACKTRACE", "0");
    execute(&mut command)
}

/// The model files of the crate in `folder`, as test target names, sorted.
fn models(folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(paths::root().join(folder).join("tests")) else { return Vec::new() };
    let target =
        |name: String| name.strip_suffix(".rs").filter(|stem| stem.starts_with("loom_")).map(str::to_owned);
    let mut models: Vec<_> = entries
        .flatten()
        .filter_map(|entry| target(entry.file_name().to_string_lossy().into_owned()))
        .collect();
    models.sort();
    models
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_with_loom_models_is_in_a_group() {
        for entry in std::fs::read_dir(paths::root().join("crates")).unwrap().flatten() {
            let folder = format!("crates/{}", entry.file_name().to_string_lossy());
            if !models(&folder).is_empty() {
                assert!(GROUPS.iter().any(|group| group.folder == folder), "{folder} is in no loom group");
            }
        }
    }

    #[test]
    fn unknown_group_is_refused_by_name() {
        let error = run(&Args { group: Some("cire".into()), preemptions: 2 }).unwrap_err().to_string();
        assert!(error.contains("`cire`") && error.contains("att-resources"), "{error}");
    }
}
