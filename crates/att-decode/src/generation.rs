//! Which hardware wrote a chunk, from its first eight bytes.

use crate::bits::bits;
use crate::error::Error;

/// A generation of the trace format.
///
/// ```
/// use wavescope_att_decode::Generation;
/// let word: u64 = 0x0000_0000_000f_8011; // what a capture on MI350 begins with
/// assert_eq!(Generation::of_chunk(&word.to_le_bytes()), Ok(Generation::Gfx9));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// MI200, MI300 and MI350: 16-bit units, a software header in front.
    Gfx9,
    /// RDNA 1 and 2: header versions 1 and 2.
    Gfx10,
    /// RDNA 3: header version 3.
    Gfx11,
    /// RDNA 4: header version 4.
    Gfx12,
    /// gfx1250: header version 5, whole bytes.
    Gfx1250,
}

impl Generation {
    /// Number of bytes that name the format.
    pub const HEADER_BYTES: usize = 8;

    /// Names the format of a chunk from its first eight bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TooShort`] for fewer than eight bytes, [`Error::UnknownFormat`] for a word of no generation and
    /// [`Error::EmptyGfx9`] for a gfx9 header with no byte behind it is left to the decoder.
    pub fn of_chunk(chunk: &[u8]) -> Result<Self, Error> {
        let word = first_word(chunk)?;
        let legacy = bits(word, 0, 13);
        if (legacy == 0 || legacy == 0x11) && (4..=6).contains(&bits(word, 13, 16)) {
            return Ok(Generation::Gfx9);
        }
        if legacy == 0 {
            return Err(Error::UnknownFormat { word });
        }
        match bits(word, 7, 13) {
            1 | 2 => Ok(Generation::Gfx10),
            3 => Ok(Generation::Gfx11),
            4 => Ok(Generation::Gfx12),
            5 => Ok(Generation::Gfx1250),
            _ => Err(Error::UnknownFormat { word }),
        }
    }

    /// The number that a GFXIP record carries and the stitcher goes by. gfx1250 reports 12 too.
    pub const fn gfxip(self) -> u32 {
        match self {
            Generation::Gfx9 => 9,
            Generation::Gfx10 => 10,
            Generation::Gfx11 => 11,
            Generation::Gfx12 | Generation::Gfx1250 => 12,
        }
    }
}

/// The first eight bytes of a chunk as a word.
pub(crate) fn first_word(chunk: &[u8]) -> Result<u64, Error> {
    crate::bits::load8(chunk, 0).ok_or(Error::TooShort { bytes: chunk.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_words_name_their_generation() {
        let of = |word: u64| Generation::of_chunk(&word.to_le_bytes());
        assert_eq!(of(0x000f_8011), Ok(Generation::Gfx9));
        assert_eq!(of(0xa000), Ok(Generation::Gfx9));
        assert_eq!(of(0x0003_c191), Ok(Generation::Gfx11));
        assert_eq!(of(0x4_0003_c211), Ok(Generation::Gfx12));
        assert_eq!(of(0xc000_0000_3001_2291), Ok(Generation::Gfx1250));
        assert_eq!(of(0), Err(Error::UnknownFormat { word: 0 }));
        assert_eq!(of(6 << 7), Err(Error::UnknownFormat { word: 6 << 7 }));
        assert_eq!(Generation::of_chunk(&[0x11; 7]), Err(Error::TooShort { bytes: 7 }));
    }
}
