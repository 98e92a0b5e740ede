//! The quick scan: dispatches and events of a long trace without decoding it, and cutting pieces out of it.
//!
//! A trace that comes in several chunks of one stream is scanned in two steps. [`scan`] finds register, event and
//! dispatch tokens of a chunk; it needs no other chunk, so chunks can be scanned side by side. [`ScanState::replay`]
//! then goes through what was found, chunk by chunk in order, since register values flow from one to the next. With
//! the state before a chunk, [`cut`] makes a chunk of its own out of a piece of it.
//!
//! Only the first chunk has the header that says what the stream is: [`TraceFormat`]. Later chunks begin at a token.
//! gfx10 and gfx11 have no quick scan, as in the public decoder (`source/quick_scan_export.cpp`).

mod cut;
mod state;
mod walk;

pub use cut::cut;
pub use state::ScanState;
pub use walk::{Found, scan};

use crate::bits::bits;
use crate::error::Error;
use crate::generation::{Generation, first_word};

/// What the first chunk of a trace says about all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceFormat {
    pub(crate) generation: Generation,
    /// First eight bytes of the trace.
    pub(crate) header: u64,
}

impl TraceFormat {
    /// Reads the header of the first chunk.
    ///
    /// # Errors
    ///
    /// Those of [`Generation::of_chunk`]; [`Error::NotImplemented`] for gfx10 and gfx11.
    pub fn of_first_chunk(chunk: &[u8]) -> Result<Self, Error> {
        let generation = Generation::of_chunk(chunk)?;
        match generation {
            Generation::Gfx10 | Generation::Gfx11 => Err(Error::NotImplemented),
            generation => Ok(TraceFormat { generation, header: first_word(chunk)? }),
        }
    }

    /// Generation of the trace.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether the first chunk begins with the software header of gfx9.
    pub fn is_gfx9(&self) -> bool {
        self.generation == Generation::Gfx9
    }

    /// Header version; gfx9 has none.
    pub(crate) const fn version(&self) -> u8 {
        match self.generation {
            Generation::Gfx9 => 0,
            _ => bits(self.header, 7, 13) as u8,
        }
    }
}
