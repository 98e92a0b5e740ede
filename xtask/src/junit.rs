//! The failed tests of a nextest run, from its `JUnit` report: a log's end must say what failed, and the steps after the
//! tests print thousands of lines.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::paths;

/// Where nextest puts the report that `.config/nextest.toml` asks for: below the workspace root, wherever cargo builds.
const REPORT: &str = "target/nextest/default/junit.xml";

/// Lines of a failed test's own output that are repeated: the end, where the panic is.
const OUTPUT_LINES: usize = 40;

/// Removes an older run's report, so that a run which never came to its tests is not described by it.
pub(crate) fn forget() -> Result<()> {
    match std::fs::remove_file(paths::root().join(REPORT)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("the last run's test report cannot be removed")
        }
        _ => Ok(()),
    }
}

/// The failed tests of the last run with the ends of their outputs; `None` when there is no report.
pub(crate) fn failures() -> Result<Option<String>> {
    let path = paths::root().join(REPORT);
    if !path.exists() {
        return Ok(None);
    }
    read(&path).map(Some)
}

fn read(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    described(&text).with_context(|| format!("{} is no JUnit report", path.display()))
}

/// One paragraph for each `testcase` that has a `failure` or an `error`.
fn described(report: &str) -> Result<String> {
    let document = roxmltree::Document::parse(report)?;
    let mut text = String::new();
    for case in document.descendants().filter(|node| node.has_tag_name("testcase")) {
        let fault = case.children().find(|node| node.has_tag_name("failure") || node.has_tag_name("error"));
        let Some(fault) = fault else { continue };
        let attribute = |name| case.attribute(name).unwrap_or("?");
        let kind = fault.attribute("type").unwrap_or("failed");
        writeln!(text, "{} {} ({} s): {kind}", attribute("classname"), attribute("name"), attribute("time"))?;
        for stream in ["system-out", "system-err"] {
            let output = case.children().find(|node| node.has_tag_name(stream)).and_then(|node| node.text());
            for line in end_of(output.unwrap_or_default()) {
                writeln!(text, "    {line}")?;
            }
        }
    }
    Ok(text)
}

fn end_of(output: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(OUTPUT_LINES);
    lines.into_iter().skip(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report of one run of cargo-nextest 0.9.143 over a passing, a panicking and a hanging test, shortened.
    const REPORT_OF_THREE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="2" errors="0" time="5.1">
  <testsuite name="demo" tests="3" disabled="0" errors="0" failures="2">
    <testcase name="adds" classname="demo" time="0.004"/>
    <testcase name="divides" classname="demo" time="0.010">
      <failure message="thread 'divides' panicked" type="test failure with exit code 101">whole text</failure>
      <system-out>running 1 test
</system-out>
      <system-err>thread 'divides' panicked at src/lib.rs:12:5:
attempt to divide by &lt;zero&gt;
</system-err>
    </testcase>
    <testcase name="waits" classname="demo" time="5.001">
      <failure type="test timeout"/>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn each_failed_test_is_named_with_the_end_of_its_output() {
        let text = described(REPORT_OF_THREE).unwrap();
        assert!(!text.contains("adds"), "{text}");
        assert!(text.contains("demo divides (0.010 s): test failure with exit code 101"), "{text}");
        assert!(text.contains("    attempt to divide by <zero>"), "{text}");
        assert!(text.contains("demo waits (5.001 s): test timeout"), "{text}");
    }

    #[test]
    fn only_the_end_of_a_long_output_is_repeated() {
        let long: String = (0..OUTPUT_LINES + 5).map(|line| format!("line {line}\n")).collect();
        let kept: Vec<&str> = end_of(&long).collect();
        assert_eq!(kept.len(), OUTPUT_LINES);
        assert_eq!(kept.first(), Some(&"line 5"));
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        assert!(described("<testsuites><testcase>").is_err());
    }
}
