//! External commands: printed, run in the workspace root, failure turned into an error.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths;

/// A `cargo` command (the cargo that runs us) with `args`.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

/// Prints `command`, runs it in the workspace root with our own output, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = announce(command);
    let status =
        command.current_dir(paths::root()).status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// As [`run`], with the command's standard output captured and returned.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = announce(command);
    command.stderr(std::process::Stdio::inherit());
    let output =
        command.current_dir(paths::root()).output().with_context(|| format!("cannot run `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed something that is not UTF-8"))
}

fn announce(command: &Command) -> String {
    let line = line_of(command);
    eprintln!("+ {line}");
    line
}

/// The command as one would type it: environment first, then program and arguments.
fn line_of(command: &Command) -> String {
    let environment = command
        .get_envs()
        .filter_map(|(key, value)| value.map(|value| format!("{}={}", key.to_string_lossy(), quoted(value))));
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    environment
        .chain(std::iter::once(quoted(program)))
        .chain(command.get_args().map(quoted))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--test", "loom_*"]).env("RUSTFLAGS", "--cfg loom");
        assert_eq!(line_of(&command), "RUSTFLAGS='--cfg loom' cargo test --test 'loom_*'");
    }

    #[test]
    fn failing_command_is_an_error_that_names_it() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert!(error.to_string().contains("`false` failed"), "{error}");
    }
}
