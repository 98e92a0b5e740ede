//! The `wavescope` command line: parses, calls one command, turns its error into one line and an exit code.
//!
//! Exit codes: 0 success, 1 the work itself failed, 2 bad input (wrong arguments, a missing or malformed file).

mod args;
mod capture;
mod commands;
mod demo;
mod input;
mod output;
mod progress;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    log_to_stderr();
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe went away (`wavescope decode ... | head`): nothing is wrong with the data.
        Err(error) if input::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever closed standard error wants no explanation.
            let _ = writeln!(std::io::stderr(), "wavescope: {}", input::one_line(&error));
            if input::is_bad_input(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Diagnostics are off unless `WAVESCOPE_LOG` asks for them (same syntax as `RUST_LOG`).
fn log_to_stderr() {
    if let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env("WAVESCOPE_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
