//! Tokens as lines of text: the first tool to reach for when a stream looks wrong.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use crate::error::Error;
use crate::generation::Generation;
use crate::token::{Token, TokenKind, Tokens};

pub(crate) mod fields;

/// Writes one line per token: bit offset, kind, length in bits, time, the bits in hexadecimal and the fields by name,
/// separated by tabs. Padding is left out.
///
/// ```
/// let chunk = [0x4_0003_c211u64.to_le_bytes(), [0; 8]].concat();
/// let mut text = String::new();
/// wavescope_att_decode::dump::write(&chunk, &mut text)?;
/// assert!(text.starts_with("0\tHEADER\t64\t0\t40003c211\tversion=4 simd=2 "));
/// # Ok::<(), wavescope_att_decode::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`Tokens::new`].
pub fn write(chunk: &[u8], text: &mut String) -> Result<(), Error> {
    each_line(chunk, |line| {
        text.push_str(line);
        text.push('\n');
        ControlFlow::Continue(())
    })
}

/// Hands over one line for each token of `chunk`, without a line end, until `take` breaks off. Memory does not grow with
/// the chunk.
///
/// # Errors
///
/// Those of [`Tokens::new`].
pub fn each_line(chunk: &[u8], mut take: impl FnMut(&str) -> ControlFlow<()>) -> Result<(), Error> {
    let generation = Generation::of_chunk(chunk)?;
    let mut version = 0;
    let mut line = String::new();
    for token in Tokens::new(chunk)? {
        if token.kind == TokenKind::Header {
            version = crate::bits::bits(token.raw, 7, 13) as u8;
        }
        line.clear();
        push(generation, version, &token, &mut line);
        if take(&line).is_break() {
            break;
        }
    }
    Ok(())
}

/// Appends the line of one token of a stream whose latest header has this version.
fn push(generation: Generation, version: u8, token: &Token, text: &mut String) {
    let Token { kind, bits, high, bit_offset, time, .. } = *token;
    let _ = write!(text, "{bit_offset}\t{kind}\t{bits}\t{time}\t");
    let _ = match high {
        0 => write!(text, "{:x}\t", token.value()),
        high => write!(text, "{high:x}{:016x}\t", token.value()),
    };
    let mut is_first = true;
    for &(name, from, to) in fields::fields(generation, version, kind) {
        let wide = u128::from(token.value()) | u128::from(high) << 64;
        let value = wide >> from & ((1 << (to - from)) - 1);
        let _ = write!(text, "{}{name}=", if is_first { "" } else { " " });
        let _ = if to - from > 24 { write!(text, "{value:#x}") } else { write!(text, "{value}") };
        is_first = false;
    }
}
