//! Project chores, run as `cargo xtask COMMAND`.
//!
//! This file only parses the command line; each command lives in the module of its name. Every external
//! command is printed before it runs ([`process`]), so a failing chore can be repeated by hand.

mod bench;
mod callgrind;
mod ci;
mod codegen;
mod edges;
mod fuzz;
#[cfg(feature = "golden")]
mod golden;
mod junit;
mod loom;
mod metrics;
mod on_rocr;
mod paths;
mod process;
mod steps;
mod sysroot;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Wavescope workspace")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything a change must pass: format, lints, tests, docs, generated files, edges, goldens, loom
    Ci(ci::Args),
    /// Unit, integration and doc tests of every crate
    Test(test::Args),
    /// Criterion benches; `bench decode --callgrind` counts instructions
    Bench(bench::Args),
    /// Fuzz targets, for a while
    Fuzz(fuzz::Args),
    /// Writes the files generated from the ABI facts
    Codegen(codegen::Args),
    /// Model-checks the concurrent types
    Loom(loom::Args),
    /// Style figures of the workspace
    Metrics(metrics::Args),
    /// Unpacks the real ROCm userland in a folder outside the repository
    Sysroot(sysroot::Args),
    /// Runs a program on the real ROCm runtime above the software GPU
    OnRocr(on_rocr::Args),
    /// Checks fixtures against the code, or refreshes our own goldens
    #[cfg(feature = "golden")]
    Golden(golden::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Ci(args) => ci::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Codegen(args) => codegen::run(&args),
        Command::Loom(args) => loom::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Sysroot(args) => sysroot::run(&args),
        Command::OnRocr(args) => on_rocr::run(&args),
        #[cfg(feature = "golden")]
        Command::Golden(args) => golden::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
