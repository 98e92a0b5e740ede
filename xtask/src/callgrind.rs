//! `cargo xtask bench decode --callgrind`: instructions per input byte, which no noise disturbs, beside the public
//! decoder's.
//!
//! Each row is one chunk repeated in memory to a megabyte; the count is the difference between decoding it twice and
//! once, so that start-up and reading the files cancel. The public figures are those of the yardstick in
//! `fixtures/sqtt/README.md`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths;
use crate::process::{cargo, run as execute};

/// A row of the yardstick: set, chunk, and the public decoder's instructions per byte.
struct Row {
    set: &'static str,
    chunk: &'static str,
    tokens: f64,
    full: f64,
}

const fn row(set: &'static str, chunk: &'static str, tokens: f64, full: f64) -> Row {
    Row { set, chunk, tokens, full }
}

const ROWS: [Row; 7] = [
    row("gfx1100/gemm_run_0", "k0_x1_se0.sqtt", 60.8, 118.8),
    row("gfx1200/gemm_run_0", "k0_x1_se0.sqtt", 48.8, 152.5),
    row("gfx1200/handwritten_run_0", "k0_x1_se1.sqtt", 48.0, 124.0),
    row("gfx950/gemm_run_0", "k0_x1_se0.sqtt", 66.4, 107.9),
    row("gfx10/synth_3", "k0_x0_se0.sqtt", 85.1, 245.0),
    row("gfx1250/synth_2", "k0_x0_se0.sqtt", 39.7, 485.2),
    row("gfx9_mi300/synth_2", "k0_x0_se0.sqtt", 65.7, 161.3),
];

/// Bytes that a chunk is repeated to.
const BYTES: &str = "1000000";

/// Prints the table.
pub(crate) fn run() -> Result<()> {
    let Some(shared) = paths::shared() else {
        println!("NOT RUN: ../shared/fixtures/sqtt is not there");
        return Ok(());
    };
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("NOT RUN: valgrind is not installed");
        return Ok(());
    }
    execute(&mut cargo(["build", "--release", "--package", "wavescope-att-decode", "--example", "repeat"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| paths::root().join("target"), Into::into);
    let example = target.join("release/examples/repeat");
    println!("instructions per byte                    tokens  public   full  public  ratio  occupancy");
    for row in ROWS {
        let set = shared.join("fixtures/sqtt").join(row.set);
        let count = |mode| per_byte(&example, &set, row.chunk, mode);
        let (tokens, full, occupancy) = (count("tokens")?, count("full")?, count("occupancy")?);
        println!(
            "{:<40} {tokens:>6.1} {:>7.1} {full:>6.1} {:>7.1} {:>6.2} {occupancy:>10.1}",
            row.set,
            row.tokens,
            row.full,
            row.full / full
        );
    }
    Ok(())
}

/// Instructions per byte of one mode.
fn per_byte(example: &Path, set: &Path, chunk: &str, mode: &str) -> Result<f64> {
    let output = Command::new(example).arg(set).args([chunk, mode, BYTES, "1"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let bytes = text.split_whitespace().next().context("the example printed nothing")?;
    let bytes: f64 = bytes.parse().with_context(|| format!("`{text}` begins with no number"))?;
    let [once, twice] =
        [collected(example, set, chunk, mode, "1")?, collected(example, set, chunk, mode, "2")?];
    Ok((twice - once) / bytes)
}

/// Instructions that callgrind counts.
fn collected(example: &Path, set: &Path, chunk: &str, mode: &str, times: &str) -> Result<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(example).arg(set);
    let output = command.args([chunk, mode, BYTES, times]).output().context("valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find_map(|line| line.split_once("Collected : "));
    match count {
        Some((_, count)) => count.trim().parse().with_context(|| format!("`{count}` is no count")),
        None => bail!("callgrind counted nothing: {text}"),
    }
}
