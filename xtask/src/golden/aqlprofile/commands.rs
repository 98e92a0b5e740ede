//! A packet with its commands: bytes, place, relocations.

use anyhow::Result;
use serde_json::Value;
use wavescope_aql_profile::{Commands, Form};
use wavescope_core::AqlPacket;

use super::memory::Log;
use super::value::{dwords, list, number, text};
use crate::golden::Outcome;

/// Compares one packet and the commands that it runs with the recorded `aql` and `ib`.
pub(super) fn compare(
    place: &str,
    (aql, ib): (&Value, &Value),
    packet: &AqlPacket,
    commands: &Commands,
    log: &Log,
    outcome: &mut Outcome,
) -> Result<()> {
    compare_dwords(&format!("aql.{place}"), &dwords(&aql["dw"])?, &packet.0, outcome);
    let (alloc, offset) = (number(&ib["alloc"])?, number(&ib["off"])?);
    let carried = [row(2, alloc, offset, "lo", 0), row(3, alloc, offset, "hi", 0)];
    outcome.compare(format_args!("aql.{place}.relocs"), &recorded(&aql["relocs"])?[..], &carried);
    let count = number(&ib["ndw"])?;
    let recorded_dwords = dwords(&ib["dw"])?;
    outcome.compare(format_args!("ib.{place}.ndw"), &count, &(commands.dwords().len() as u64));
    outcome.compare(format_args!("ib.{place}.dw.len"), &count, &(recorded_dwords.len() as u64));
    let found = log.dwords(alloc, offset, count);
    compare_dwords(&format!("ib.{place}"), &recorded_dwords, &found, outcome);
    let ours = ours(commands);
    outcome.compare(format_args!("ib.{place}.relocs"), &recorded(&ib["relocs"])?, &ours);
    Ok(())
}

/// Compares dword by dword, so that a difference names its place.
pub(super) fn compare_dwords(place: &str, expected: &[u32], found: &[u32], outcome: &mut Outcome) {
    outcome.compare(format_args!("{place}.len"), &expected.len(), &found.len());
    let hex = |dword: &u32| format!("{dword:08x}");
    for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
        if expected == found {
            outcome.equal(1);
        } else {
            outcome.compare(format_args!("{place}[{index}]"), &hex(expected), &hex(found));
        }
    }
}

/// dword, allocation, offset, form, constant.
type Row = (u64, u64, u64, String, u64);

fn row(dword: u64, alloc: u64, offset: u64, form: &str, constant: u64) -> Row {
    (dword, alloc, offset, form.to_owned(), constant)
}

fn recorded(relocations: &Value) -> Result<Vec<Row>> {
    let entry = |entry: &Value| {
        let fields = list(entry)?;
        let at = |index: usize| fields.get(index).map_or(Ok(0), number);
        Ok((at(0)?, at(1)?, at(2)?, text(&entry[3])?.to_owned(), at(4)?))
    };
    let mut rows = list(relocations)?.iter().map(entry).collect::<Result<Vec<_>>>()?;
    rows.sort();
    Ok(rows)
}

fn ours(commands: &Commands) -> Vec<Row> {
    let mut rows = Vec::new();
    for relocation in commands.relocations() {
        let (dword, alloc) = (relocation.dword.into(), relocation.buffer.into());
        let mut add = |dword, form, constant: u32| {
            rows.push(row(dword, alloc, relocation.offset, form, constant.into()));
        };
        match relocation.form {
            Form::Pair => {
                add(dword, "lo", 0);
                add(dword + 1, "hi", 0);
            }
            Form::Shr8 => add(dword, "shr8", 0),
            Form::Shr40 => add(dword, "shr40b", 0),
            Form::Shr12 => add(dword, "shr12", 0),
            Form::Shr44 { fields } => add(dword, "shr44", fields),
        }
    }
    rows.sort();
    rows
}
