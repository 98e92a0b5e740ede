//! How many instructions interception and counting take on the submitting thread for each dispatch, batches of 64, warm, on
//! a device that does nothing: `cargo bench -p wavescope-counting --bench instructions`. Callgrind counts them, so a busy
//! machine does not matter. More than the limit of a case is a failure.

use std::error::Error;
use std::process::Command;
use std::sync::Arc;

#[path = "../enqueue/heap.rs"]
mod heap;
#[path = "../enqueue/rig.rs"]
mod rig;

use heap::Heap;
use rig::{BATCH, Case, Rig};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Name and most instructions.
const CASES: [(&str, Case, u64); 4] = [
    ("no subscriber", Case::NoSubscriber, 40),
    ("declined", Case::Declined { serialized: false }, 1_000),
    ("declined serialized", Case::Declined { serialized: true }, 1_500),
    ("counted", Case::Counted, 4_000),
];

/// Batches before and while instructions are counted.
const WARM_UP: usize = 20;
const COUNTED: u64 = 20;

/// Set in the process whose instructions are counted: index of the case.
const CASE: &str = "WAVESCOPE_BENCH_CASE";

fn main() -> Outcome {
    if let Ok(index) = std::env::var(CASE) {
        submit_batches(CASES[index.parse::<usize>()?].1);
        return Ok(());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("NOT RUN: needs valgrind");
        return Ok(());
    }
    let mut over = Vec::new();
    for (index, (name, _, limit)) in CASES.iter().enumerate() {
        let instructions = counted(index)? / (COUNTED * BATCH as u64);
        println!("{name:24} {instructions:>6} instructions for each dispatch, at most {limit}");
        if instructions > *limit {
            over.push(*name);
        }
    }
    if over.is_empty() { Ok(()) } else { Err(format!("too many instructions: {}", over.join(", ")).into()) }
}

fn submit_batches(case: Case) {
    let mut rig = Rig::new(case, Arc::new(Heap::default()));
    for _ in 0..WARM_UP {
        rig.submit();
        rig.retire();
    }
    for _ in 0..COUNTED {
        counted_submit(&mut rig);
        rig.retire();
    }
}

/// Callgrind counts in here, on this thread.
#[inline(never)]
fn counted_submit(rig: &mut Rig) {
    rig.submit();
}

/// Instructions inside [`counted_submit`].
fn counted(index: usize) -> Outcome<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*counted_submit*")
        .arg(std::env::current_exe()?)
        .env(CASE, index.to_string())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    match collected.map(|(_, count)| count.trim().parse()) {
        Some(Ok(count)) if output.status.success() && count > 0 => Ok(count),
        _ => Err(format!("callgrind: {}\n{said}", output.status).into()),
    }
}
