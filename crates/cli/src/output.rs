//! Tables for people and JSON for machines.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

use serde::Serialize;

/// Prints one JSON document and a newline.
///
/// # Errors
/// What standard output answered.
pub(crate) fn write_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// A writer that says when it failed, to whoever makes what it writes: further work would be in vain.
#[derive(Debug)]
pub(crate) struct Watched<W> {
    out: W,
    failed: Rc<Cell<bool>>,
}

impl<W> Watched<W> {
    /// The writer, and its sign.
    pub(crate) fn new(out: W) -> (Self, Rc<Cell<bool>>) {
        let failed = Rc::<Cell<bool>>::default();
        (Self { out, failed: Rc::clone(&failed) }, failed)
    }

    fn watch<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| self.failed.set(error.kind() != io::ErrorKind::Interrupted))
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.watch(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.watch(flushed)
    }
}

/// Columns as wide as their widest cell; cells that are numbers are right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts with a row of column titles.
    pub(crate) fn new(titles: &[&str]) -> Self {
        Self { rows: vec![titles.iter().map(|&title| title.to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// What `out` answered.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| {
                if cell.starts_with(|c: char| c.is_ascii_digit()) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_write_is_seen_by_who_makes_the_lines() {
        let (mut out, failed) = Watched::new(Vec::new());
        assert!(out.write_all(b"1234").is_ok() && !failed.get());
        let (mut full, failed) = Watched::new(std::fs::File::create("/dev/full").unwrap());
        assert!(full.write_all(b"5").is_err() && failed.get());
    }

    #[test]
    fn numbers_align_right_and_words_left() {
        let mut table = Table::new(&["name", "waves"]);
        table.row(["a".to_owned(), "5".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name  waves\na         5\n");
    }
}
