//! Output that cannot be written, or that nobody reads, is told apart; standard error is never needed.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

/// Every command that prints, on a folder with a trace and a command buffer.
fn commands(folder: &std::path::Path) -> Vec<Vec<String>> {
    let (trace, buffer) = (folder.join("t.sqtt"), folder.join("b.txt"));
    // A gfx9 header (0x11 | 5 << 13, as the capturing library writes it) and words that are tokens of some kind.
    let words = (1..4000u64).flat_map(|word| word.wrapping_mul(0x5851_F42D_4C95_7F2D).to_le_bytes());
    fs::write(&trace, 0xF_A011u64.to_le_bytes().into_iter().chain(words.chain([0; 8])).collect::<Vec<_>>())
        .unwrap();
    // SET_UCONFIG_REG of GRBM_GFX_INDEX, many times.
    fs::write(&buffer, "c0017900 00000200 e0000000 ".repeat(5000)).unwrap();
    let (trace, buffer) = (trace.to_str().unwrap(), buffer.to_str().unwrap());
    let commands = [
        &["decode", "--gfx", "gfx942", "--sqtt", trace][..],
        &["decode", "--gfx", "gfx942", "--sqtt", trace, "--format", "text"],
        &["tokens", trace],
        &["tokens", "--json", trace],
        &["pm4", "--gfx", "gfx942", buffer],
        &["list", "targets"],
        &["list", "targets", "--json"],
        &["list", "counters", "--gfx", "gfx942"],
    ];
    commands.iter().map(|words| words.iter().map(|&word| word.to_owned()).collect()).collect()
}

fn run(arguments: &[String], stdout: Stdio, stderr: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wavescope"));
    command.args(arguments).stdout(stdout).stderr(stderr).output().unwrap()
}

fn full() -> Stdio {
    File::create("/dev/full").unwrap().into()
}

#[test]
fn full_disk_is_a_failure_that_names_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in commands(folder.path()) {
        let output = run(&arguments, full(), Stdio::piped());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert_eq!(
            said, "wavescope: cannot write to standard output: No space left on device (os error 28)\n",
            "{arguments:?}"
        );
    }
}

#[test]
fn reader_that_went_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in commands(folder.path()) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(&arguments, writer.into(), Stdio::piped());
        assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]), "{arguments:?}");
    }
}

#[test]
fn full_standard_error_changes_no_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let missing = ["tokens".to_owned(), folder.path().join("missing").display().to_string()];
    assert_eq!(run(&missing, Stdio::null(), full()).status.code(), Some(2));
    let out = folder.path().join("out").display().to_string();
    let demo = ["demo".to_owned(), "--contexts".into(), "1".into(), "--out".into(), out];
    assert_eq!(run(&demo, Stdio::null(), full()).status.code(), Some(0));
}

#[test]
fn folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for out in [file.clone(), file.join("below")] {
        let demo = ["demo".to_owned(), "--out".into(), out.display().to_string()];
        let output = run(&demo, Stdio::null(), Stdio::piped());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(&*out.display().to_string()), "{said}");
    }
}
