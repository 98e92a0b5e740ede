//! Finds the tokens that matter, without a clock.

use super::TraceFormat;
use crate::bits::{load8, load16_padded, window, window_padded};
use crate::generation::Generation;
use crate::quirks;
use crate::token::gfx9::entry as gfx9_entry;
use crate::token::{RdnaCursor, TokenKind, is_padding, lookup, padding, table};

/// A token that the quick scan takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Offset of its first byte in the chunk.
    pub byte_offset: u64,
    /// What it is.
    pub kind: TokenKind,
    /// The 64 bits that begin with it.
    pub raw: u64,
}

/// Finds the tokens of a chunk that the quick scan takes. The first chunk of a gfx9 trace has its header skipped; all
/// others begin at a token.
pub fn scan(format: &TraceFormat, chunk: &[u8], is_first: bool) -> Vec<Found> {
    let mut found = Vec::new();
    scan_until(format, chunk, is_first, chunk.len(), &mut |token| found.push(token));
    found
}

/// The same up to a byte offset.
pub(super) fn scan_until(
    format: &TraceFormat,
    chunk: &[u8],
    is_first: bool,
    end: usize,
    take: &mut dyn FnMut(Found),
) {
    match format.generation {
        Generation::Gfx9 => scan_gfx9(chunk, if is_first { Generation::HEADER_BYTES } else { 0 }, end, take),
        generation => scan_rdna(generation, chunk, end, take),
    }
}

fn scan_gfx9(chunk: &[u8], mut byte: usize, end: usize, take: &mut dyn FnMut(Found)) {
    while byte < end.min(chunk.len()) {
        // A token cut off by the end counts here.
        let raw = load8(chunk, byte).unwrap_or_else(|| load16_padded(chunk, byte) as u64);
        let entry = gfx9_entry(raw);
        if matches!(entry.kind, TokenKind::Reg | TokenKind::RegCs | TokenKind::RegCsPriv) {
            take(Found { byte_offset: byte as u64, kind: entry.kind, raw });
        }
        byte += usize::from(entry.step) / 8;
    }
}

fn scan_rdna(generation: Generation, chunk: &[u8], end: usize, take: &mut dyn FnMut(Found)) {
    let table = table(generation);
    let end = end.min(chunk.len()) as u64 * 8;
    let (mut bit, mut continues) = (0, false);
    while bit < end {
        let raw = window(chunk, bit).unwrap_or_else(|| window_padded(chunk, bit));
        if continues && raw & 1 == 1 {
            bit += 8;
            continue;
        }
        if is_padding(raw) {
            continues &= !quirks::PADDING_ENDS_CONTINUATION_IN_QUICK_SCAN.contains(&generation);
            bit += padding(raw, RdnaCursor::unit(generation));
            continue;
        }
        let entry = *lookup(table, raw);
        continues = entry.kind == TokenKind::WaveStartExt;
        if matches!(entry.kind, TokenKind::Reg | TokenKind::RegInit | TokenKind::Event) {
            take(Found { byte_offset: bit >> 3, kind: entry.kind, raw });
        }
        let rounds_down = quirks::QUICK_SCAN_ROUNDS_DOWN.contains(&generation);
        bit += u64::from(if rounds_down { entry.step & !7 } else { entry.step });
    }
}
