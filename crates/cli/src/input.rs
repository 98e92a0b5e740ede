//! Which errors are the input's fault (exit code 2) and which are the work's (exit code 1).

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;

/// Marks an error as caused by what the user gave us.
#[derive(Debug)]
pub(crate) struct BadInput(String);

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// An error about the input, with one line that says what, where and what to do.
pub(crate) fn bad_input(message: impl Into<String>) -> anyhow::Error {
    BadInput(message.into()).into()
}

/// Marks any library's error as the input's fault, with its causes in the same line.
pub(crate) fn blame_input(error: impl Into<anyhow::Error>) -> anyhow::Error {
    bad_input(format!("{:#}", error.into()))
}

/// Whether any cause of `error` blames the input.
pub(crate) fn is_bad_input(error: &anyhow::Error) -> bool {
    error.downcast_ref::<BadInput>().is_some()
}

/// Whether `error` is a write to a pipe that nobody reads any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    })
}

/// The error with its causes in one line; control characters, of a file's name perhaps, are escaped.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    // Files are named where they are read and written: what has no name is standard output.
    let prefix = if error.is::<std::io::Error>() { "cannot write to standard output: " } else { "" };
    let mut line = prefix.to_owned();
    for c in format!("{error:#}").chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// Reads a file the user named.
///
/// # Errors
/// Bad input, naming the file and what the operating system said.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| bad_input(format!("{}: {error}", path.display())))
}

/// Writes a file of results.
///
/// # Errors
/// Names the file and what the operating system said (a full disk, a missing folder).
pub(crate) fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
