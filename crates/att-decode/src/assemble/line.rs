//! One line of an assembler text.

use super::AssembleError;
use super::bits::BitWriter;
use crate::dump::fields;
use crate::generation::Generation;
use crate::token::gfx9::GFX9_CLOCKS_PER_TICK;
use crate::token::{Row, TokenKind, rows};

/// A line in its parts.
#[derive(Debug)]
pub(super) struct Line<'a> {
    number: usize,
    /// Clocks since the line before.
    clocks: u64,
    kind: &'a str,
    fields: Vec<(&'a str, u128)>,
}

impl<'a> Line<'a> {
    /// `None` for an empty line or a comment.
    pub(super) fn parse(number: usize, text: &'a str) -> Result<Option<Self>, AssembleError> {
        let mut words = text.split_whitespace().peekable();
        let Some(&first) = words.peek() else { return Ok(None) };
        if first.starts_with('#') {
            return Ok(None);
        }
        let mut clocks = 0;
        if let Some(digits) = first.strip_prefix('+') {
            clocks = number_of(number, digits)? as u64;
            words.next();
        }
        let kind = words.next().unwrap_or_default();
        let field = |word: &'a str| {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            Ok((name, number_of(number, value)?))
        };
        let fields = words.map(field).collect::<Result<_, _>>()?;
        Ok(Some(Line { number, clocks, kind, fields }))
    }

    /// Appends the token, with whatever passes the clocks before it.
    pub(super) fn assemble(
        &self,
        generation: Generation,
        version: &mut u8,
        out: &mut BitWriter,
    ) -> Result<(), AssembleError> {
        if self.kind == TokenKind::SwHeader.name() {
            let header = self.value(generation, *version, TokenKind::SwHeader, 0x11)?;
            out.push(header, 64);
            return Ok(());
        }
        let row = self.row(generation)?;
        let left = self.pass(generation, row, out)?;
        if row.kind == TokenKind::Header {
            let named = self.fields.iter().find(|(name, _)| *name == "version");
            *version = named.map_or(0, |&(_, value)| value as u8);
        }
        let (pattern, _) = row.prefix();
        let value = self.value(generation, *version, row.kind, u128::from(pattern))?;
        out.push(value | u128::from(left) << row.delta.0, row.bits.into());
        Ok(())
    }

    fn row(&self, generation: Generation) -> Result<&'static Row, AssembleError> {
        let found = rows(generation).iter().find(|row| row.kind.name() == self.kind);
        found.ok_or_else(|| AssembleError::UnknownKind {
            line: self.number,
            generation,
            kind: self.kind.to_owned(),
        })
    }

    /// The pattern with the fields in their places.
    fn value(
        &self,
        generation: Generation,
        version: u8,
        kind: TokenKind,
        mut value: u128,
    ) -> Result<u128, AssembleError> {
        let places = fields::fields(generation, version, kind);
        for &(name, field) in &self.fields {
            let place = places.iter().find(|(known, ..)| *known == name);
            let Some(&(_, from, to)) = place else {
                let (line, kind) = (self.number, kind.name());
                return Err(AssembleError::UnknownField { line, kind, field: name.to_owned() });
            };
            if field >> (to - from) != 0 {
                return Err(AssembleError::Number { line: self.number, text: format!("{name}={field}") });
            }
            value |= field << from;
        }
        Ok(value)
    }

    /// Lets the clocks pass that the token's own increment does not hold; returns the increment field.
    fn pass(&self, generation: Generation, row: &Row, out: &mut BitWriter) -> Result<u64, AssembleError> {
        let unit = if generation == Generation::Gfx9 { GFX9_CLOCKS_PER_TICK as u64 } else { 1 };
        let own = (1u64 << (row.delta.1 - row.delta.0)) - 1;
        let constant = u64::from(row.add);
        let fits = |left: u64| (constant..=constant + own).contains(&left) || left == 0 && constant == 0;
        let mut left = self.clocks / unit;
        if !self.clocks.is_multiple_of(unit) {
            return Err(AssembleError::Clocks { line: self.number, clocks: self.clocks });
        }
        while !fits(left) {
            let passed = pass_some(generation, left.saturating_sub(constant), out);
            if passed == 0 {
                return Err(AssembleError::Clocks { line: self.number, clocks: self.clocks });
            }
            left -= passed;
        }
        Ok(left - constant)
    }
}

/// Appends one token that lets up to `left` clocks (ticks on gfx9) pass; returns how many.
fn pass_some(generation: Generation, left: u64, out: &mut BitWriter) -> u64 {
    /// Clocks from which a TIMESTAMP is shorter than several TIME tokens.
    const MANY: u64 = 200;
    match generation {
        Generation::Gfx9 => {
            let ticks = left.min(255);
            out.push(u128::from(ticks) << 4, 16);
            ticks
        }
        _ if left >= MANY => {
            let step = left.min((1 << 36) - 1);
            match generation {
                Generation::Gfx10 => out.push(1 | 1 << 14 | u128::from(step) << 16, 64),
                Generation::Gfx11 => out.push(1 | u128::from(step) << 12, 48),
                _ => out.push(1 | u128::from(step) << 12, 64),
            }
            step
        }
        Generation::Gfx1250 => time(left, 1, 0xe, out),
        _ => time(left, 4, 0x8, out),
    }
}

/// Appends a TIME token, whose constant part is `least`.
fn time(left: u64, least: u64, pattern: u128, out: &mut BitWriter) -> u64 {
    if left < least {
        return 0;
    }
    let field = (left - least).min(15);
    out.push(pattern | u128::from(field) << 4, 8);
    field + least
}

fn number_of(line: usize, text: &str) -> Result<u128, AssembleError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| AssembleError::Number { line, text: text.to_owned() })
}
