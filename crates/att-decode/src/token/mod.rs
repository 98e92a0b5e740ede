//! The first layer: bytes to tokens, each with its place, length and time.
//!
//! [`Tokens`] is the iterator; [`TokenKind`] names what it finds. Tokens come in stream order. What the hardware
//! sends slightly out of order (WAVE_READY on gfx10 and gfx11, times around a gfx9 time reset) is put right one
//! layer up.

mod cursor;
pub(crate) mod entry;
pub(crate) mod gfx9;
mod iter;
mod kind;
mod tables;
pub(crate) mod timestamp;

pub(crate) use cursor::{RdnaCursor, WINDOW_BITS, is_padding, late_delta};
pub(crate) use entry::{Entry, INDEX_BITS, Row, Table, lookup, padding};
pub use iter::{Token, Tokens};
pub use kind::TokenKind;
pub(crate) use tables::{rows, table};
