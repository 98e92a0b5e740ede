//! Kind `sqtt-encode`: the software GPU's token encoder against streams that it did not write.
//!
//! A case is a token dump of a set. The dump's bits of each token are taken apart by the dump's kind and the public
//! format description ([`gfx9`], [`rdna`] here), put into the encoder's types, and encoded with the time that the dump
//! gives; every bit of the stream must come out again. Bits of a token that no field names must be clear; only in sets
//! of random tokens (`soup_*`) may they be anything, and are taken over.

mod gfx9;
mod rdna;
mod word;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wavescope_software_gpu::sqtt::BitWriter;
use wavescope_sqtt_fixtures::Set;

use super::{Kind, Outcome, Role, Source, read_text};
use word::Word;

/// The kind `sqtt-encode`.
pub(crate) struct SqttEncode;

impl Kind for SqttEncode {
    fn name(&self) -> &'static str {
        "sqtt-encode"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if matches!(name, "tokens.tsv" | "tokens.tsv.gz") { Role::Case } else { Role::Support }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let set = Set::in_folder(case.parent().map_or_else(PathBuf::new, Path::to_owned));
        let family = Family::of(&set)?;
        let mut outcome = Outcome::default();
        for section in read_text(case)?.split("# ").skip(1) {
            let (file, dump) = section.split_once('\n').context("a section has no lines")?;
            let stream = set.bytes(file)?;
            let rows = dump.lines().map(Row::parse).collect::<Result<Vec<_>>>()?;
            let mut stream = Stream { file, bytes: &stream, family, outcome: &mut outcome };
            stream.check(&rows)?;
        }
        Ok(outcome)
    }

    fn ci_sources(&self) -> Vec<Source> {
        vec![Source { shared: "fixtures/sqtt", copy: Some("crates/att-decode/tests/data") }]
    }
}

/// What a set's streams look like.
#[derive(Clone, Copy)]
struct Family {
    layout: Layout,
    /// Whether tokens are random in every bit.
    random: bool,
}

/// The generations' layouts.
#[derive(Clone, Copy)]
enum Layout {
    Gfx9,
    Rdna(rdna::Layout),
}

impl Family {
    fn of(set: &Set) -> Result<Self> {
        let meta: Value = serde_json::from_str(&set.text("meta.json")?)?;
        let layout = match meta["generation"].as_str().unwrap_or_default() {
            "gfx9" => Layout::Gfx9,
            "gfx10" => Layout::Rdna(rdna::Layout::Gfx10),
            "gfx11" => Layout::Rdna(rdna::Layout::Gfx11),
            "gfx12" => Layout::Rdna(rdna::Layout::Gfx12),
            "gfx1250" => Layout::Rdna(rdna::Layout::Gfx1250),
            other => bail!("{}: unknown generation `{other}`", set.name),
        };
        Ok(Self { layout, random: set.name.contains("soup_") })
    }
}

/// A line of a dump.
struct Row<'a> {
    at: u64,
    kind: &'a str,
    bits: u32,
    time: u64,
    /// The lowest 64 bits.
    low: u64,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Result<Self> {
        let mut columns = line.split('\t');
        let mut next = || columns.next().with_context(|| format!("malformed line `{line}`"));
        Ok(Self {
            at: next()?.parse()?,
            kind: next()?,
            bits: next()?.parse()?,
            time: next()?.parse()?,
            low: u64::from_str_radix(next()?, 16)?,
        })
    }
}

/// A token, encoded.
struct Encoded {
    bits: u32,
    word: u128,
    /// Least and greatest step of time that its field holds.
    steps: (u64, u64),
}

/// One stream under check.
struct Stream<'a> {
    file: &'a str,
    bytes: &'a [u8],
    family: Family,
    outcome: &'a mut Outcome,
}

impl Stream<'_> {
    fn check(&mut self, rows: &[Row<'_>]) -> Result<()> {
        let mut out = BitWriter::default();
        let mut time = 0;
        for row in rows {
            self.fill(&mut out, row.at);
            self.token(row, row.time.wrapping_sub(time), &mut out)?;
            time = row.time;
        }
        self.end(&mut out);
        // Only the last token may be cut off.
        let end = self.bytes.len() as u64 * 8;
        let whole = out.bits() == end || out.bits() > end && rows.last().is_some_and(|row| row.at < end);
        out.pad(4);
        let mut rebuilt: Vec<u8> = out.take(1).iter().flat_map(|dword| dword.to_le_bytes()).collect();
        rebuilt.truncate(self.bytes.len());
        self.outcome.compare(format_args!("{}: length", self.file), &true, &whole);
        let first = rebuilt.iter().zip(self.bytes).position(|(mine, theirs)| mine != theirs);
        self.outcome.compare(format_args!("{}: first byte that differs", self.file), &None, &first);
        Ok(())
    }

    /// Dumps leave out NOP. On gfx1250 it has four bits that do not matter.
    fn fill(&self, out: &mut BitWriter, to: u64) {
        let Layout::Rdna(layout) = self.family.layout else { return };
        while out.bits() < to {
            if self.family.random && matches!(layout, rdna::Layout::Gfx1250) {
                out.push(Word::at(self.bytes, out.bits()).low(8) & 0xF0, 8);
            } else {
                rdna::Token::Nop.write(layout, 0, out);
            }
        }
    }

    fn token(&mut self, row: &Row<'_>, step: u64, out: &mut BitWriter) -> Result<()> {
        let raw = Word::at(self.bytes, row.at);
        // The dump's bits, not the stream's: these are what has to come out. It lacks what is beyond 64.
        let word = raw.with_low(row.low);
        let place = format!("{}, {} at bit {}", self.file, row.kind, row.at);
        self.outcome.compare(format_args!("{place}: offset"), &row.at, &out.bits());
        let encoded = match self.family.layout {
            Layout::Gfx9 => gfx9::encode(row.kind, &word, step),
            Layout::Rdna(layout) => rdna::encode(layout, row.kind, &word, step),
        };
        let encoded = encoded.with_context(|| format!("{place}: no type for this kind"))?;
        self.outcome.compare(format_args!("{place}: length"), &row.bits, &encoded.bits);
        let (least, most) = encoded.steps;
        self.outcome.compare(format_args!("{place}: step {step}"), &true, &(least..=most).contains(&step));
        let expected = raw.low(row.bits);
        let spare = if self.family.random { word.unread(row.bits) } else { 0 };
        let found = encoded.word | spare;
        self.outcome.compare(format_args!("{place}: bits"), &Hex(expected), &Hex(found));
        out.push(found, encoded.bits);
        Ok(())
    }

    /// What follows the last token of the dump: NOP, or bytes at the end of random data that hold no whole token.
    fn end(&self, out: &mut BitWriter) {
        let end = self.bytes.len() as u64 * 8;
        if self.family.random && end.saturating_sub(out.bits()) < TAIL_BITS {
            let word = Word::at(self.bytes, out.bits());
            let left = (end - out.bits()) as u32;
            out.push(word.low(left), left);
        }
        self.fill(out, end);
    }
}

/// Fewer bits than this behind the last token may be the beginning of one that is cut off.
const TAIL_BITS: u64 = 72;

/// Shown in hexadecimal.
#[derive(PartialEq)]
struct Hex(u128);

impl std::fmt::Debug for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
