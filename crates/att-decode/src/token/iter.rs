//! The public token iterator.

use super::cursor::RdnaCursor;
use super::gfx9::Gfx9Cursor;
use super::kind::TokenKind;
use crate::error::Error;
use crate::generation::Generation;

/// One token of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Length in bits.
    pub bits: u8,
    /// Bits 64 to 71 of a token longer than 64 bits.
    pub high: u8,
    /// Where it begins, in bits from the start of the chunk.
    pub bit_offset: u64,
    /// Shader clock at this token, counted from the start of the chunk.
    pub time: i64,
    /// The 64 bits that begin with this token; those behind its length belong to the next ones.
    pub raw: u64,
}

impl Token {
    /// The bits of the token, the low 64 of them.
    pub const fn value(&self) -> u64 {
        if self.bits >= 64 { self.raw } else { self.raw & ((1 << self.bits) - 1) }
    }
}

/// The tokens of a chunk in stream order, padding left out.
///
/// ```
/// use wavescope_att_decode::{TokenKind, Tokens};
/// let mut chunk = 0x4_0003_c211u64.to_le_bytes().to_vec(); // HEADER of gfx12
/// chunk.extend([0xf8, 0, 0, 0, 0, 0, 0, 0]); // TIME: 15 + 4 clocks
/// let kinds: Vec<_> = Tokens::new(&chunk)?.map(|token| (token.kind, token.time)).collect();
/// assert_eq!(kinds, [(TokenKind::Header, 0), (TokenKind::Time, 19)]);
/// # Ok::<(), wavescope_att_decode::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    data: &'a [u8],
    cursor: Cursor,
}

#[derive(Debug, Clone)]
enum Cursor {
    Gfx9(Gfx9Cursor),
    Rdna(RdnaCursor),
}

impl<'a> Tokens<'a> {
    /// Starts at the first token of a chunk.
    ///
    /// # Errors
    ///
    /// Those of [`Generation::of_chunk`].
    pub fn new(chunk: &'a [u8]) -> Result<Self, Error> {
        let cursor = match Generation::of_chunk(chunk)? {
            Generation::Gfx9 => Cursor::Gfx9(Gfx9Cursor::new()),
            rdna => Cursor::Rdna(RdnaCursor::new(rdna)),
        };
        Ok(Tokens { data: chunk, cursor })
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        match &mut self.cursor {
            Cursor::Gfx9(cursor) => cursor.next(self.data),
            Cursor::Rdna(cursor) => cursor.next(self.data),
        }
    }

    /// Faster than a loop over `next`: the family is looked at once, position and clock stay in registers.
    fn fold<B, F: FnMut(B, Token) -> B>(self, mut value: B, mut f: F) -> B {
        match self.cursor {
            Cursor::Gfx9(mut cursor) => {
                while let Some(token) = cursor.next(self.data) {
                    value = f(value, token);
                }
            }
            Cursor::Rdna(cursor) => value = cursor.fold(self.data, value, f),
        }
        value
    }
}
