//! One module per command; each takes its arguments, writes to standard output, and returns an error that says it all.

mod decode;
mod demo;
mod list;
mod pm4;
mod tokens;

use crate::args::Command;

/// Runs the command that was asked for.
///
/// # Errors
/// What went wrong, in one line; `input::is_bad_input` tells whose fault it was.
pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Decode(args) => decode::run(&args),
        Command::Tokens(args) => tokens::run(&args),
        Command::Pm4(args) => pm4::run(&args),
        Command::List(args) => list::run(&args.what),
        Command::Demo(args) => demo::run(&args),
    }
}
