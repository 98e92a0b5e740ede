//! SDMA packets, as the runtime writes them (`core/inc/sdma_registers.h` of ROCr).
//!
//! The first dword holds the operation in bits 7:0 and its variant in bits 15:8. Counts are one less than what they
//! count on every generation served here (gfx9 and later).

/// Operations, bits 7:0 of the header.
mod operation {
    pub(super) const NOP: u8 = 0;
    pub(super) const COPY: u8 = 1;
    pub(super) const WRITE: u8 = 2;
    pub(super) const FENCE: u8 = 5;
    pub(super) const TRAP: u8 = 6;
    pub(super) const POLL: u8 = 8;
    pub(super) const ATOMIC: u8 = 10;
    pub(super) const FILL: u8 = 11;
    pub(super) const TIMESTAMP: u8 = 13;
    pub(super) const CACHE_CONTROL: u8 = 17;
}

/// Layouts that differ between generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// gfx9 to gfx11.
    Classic,
    /// gfx12: wider coordinates in rectangles.
    Gfx12,
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// Nothing that memory would show: padding, cache flushes.
    Nothing,
    /// Bytes to one or two places.
    Copy { from: u64, to: u64, also_to: Option<u64>, bytes: u64 },
    /// Two blocks change places.
    Swap { a: u64, b: u64, bytes: u64 },
    /// A box out of a volume into another.
    CopyBox(CopyBox),
    /// Dwords from the packet.
    Write { to: u64, dwords: Vec<u32> },
    /// A value once everything before is done.
    Fence { to: u64, value: Value },
    /// An interrupt that names an event.
    Trap { event: u32 },
    /// Waits for memory.
    Poll { at: u64, mask: u64, condition: Condition, reference: Value },
    /// One atomic operation.
    Atomic { at: u64, operation: Atomic, source: Value, compare: u64, until_equal: bool },
    /// A pattern, again and again.
    Fill { to: u64, bytes: u64, pattern: Pattern },
    /// The GPU's clock.
    Timestamp { to: u64 },
}

/// A value of 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Dword(u32),
    Quad(u64),
}

/// What a fill repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Byte(u8),
    Word(u16),
    Dword(u32),
}

/// How memory compares with a poll's reference value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// Atomic operations of the texture cache (`TC_OP_ATOMIC_*`, Linux `vega10_enum.h`), whichever the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    Swap,
    CompareSwap,
    Add,
    Subtract,
    SignedMinimum,
    Minimum,
    SignedMaximum,
    Maximum,
    And,
    Or,
    Xor,
}

/// One end of a box copy. All but `base` in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) base: u64,
    pub(super) start: [u64; 3],
    /// From a row to the next.
    pub(super) pitch: u64,
    /// From a slice to the next.
    pub(super) slice: u64,
}

/// A box of elements out of one volume into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyBox {
    pub(super) from: Volume,
    pub(super) to: Volume,
    /// Elements in x, y and z.
    pub(super) extent: [u64; 3],
    /// Size of an element: its binary logarithm.
    pub(super) element: u32,
}

/// Why the words at the read pointer are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It goes on behind the write pointer.
    Incomplete,
    /// Not an operation of the engine.
    Unknown {
        /// The first dword.
        header: u32,
    },
}

/// Dwords from the read pointer on.
pub(super) struct Words<'a> {
    /// Loads the dword at an index.
    pub(super) load: &'a dyn Fn(u64) -> u32,
    /// Dwords that the producer has written.
    pub(super) count: u64,
}

impl Words<'_> {
    fn dword(&self, index: u64) -> Result<u32, Unreadable> {
        if index < self.count { Ok((self.load)(index)) } else { Err(Unreadable::Incomplete) }
    }

    fn quad(&self, index: u64) -> Result<u64, Unreadable> {
        let (low, high) = (self.dword(index)?, self.dword(index + 1)?);
        Ok(u64::from(low) | u64::from(high) << 32)
    }
}

/// Reads the packet at the read pointer; returns it with its length in dwords.
pub(super) fn parse(words: &Words<'_>, layout: Layout) -> Result<(Packet, u64), Unreadable> {
    let header = words.dword(0)?;
    let [operation, variant, ..] = header.to_le_bytes();
    match (operation, variant) {
        (operation::NOP, _) => Ok((Packet::Nothing, 1 + u64::from(bits(header, 16, 14)))),
        (operation::COPY, 0) if bits(header, 27, 1) == 1 => copy(words, Some(words.quad(7)?)),
        (operation::COPY, 0) => copy(words, None),
        (operation::COPY, 4) => Ok((Packet::CopyBox(copy_box(words, header, layout)?), 13)),
        (operation::COPY, 9) => {
            let bytes = u64::from(bits(words.dword(1)?, 0, 30)) + 1;
            Ok((Packet::Swap { a: words.quad(3)?, b: words.quad(5)?, bytes }, 7))
        }
        (operation::WRITE, 0) => write(words),
        (operation::FENCE, 0) => {
            Ok((Packet::Fence { to: words.quad(1)?, value: Value::Dword(words.dword(3)?) }, 4))
        }
        (operation::FENCE, 2) => {
            Ok((Packet::Fence { to: words.quad(1)?, value: Value::Quad(words.quad(3)?) }, 5))
        }
        (operation::TRAP, _) => Ok((Packet::Trap { event: bits(words.dword(1)?, 0, 28) }, 2)),
        (operation::POLL, 0) => poll(words, header),
        (operation::POLL, 5) => poll_quad(words, header),
        (operation::ATOMIC, _) => atomic(words, header),
        (operation::FILL, _) => fill(words, header),
        (operation::TIMESTAMP, 1 | 2) => Ok((Packet::Timestamp { to: words.quad(1)? }, 3)),
        (operation::CACHE_CONTROL, 1) => {
            words.dword(4)?;
            Ok((Packet::Nothing, 5))
        }
        _ => Err(Unreadable::Unknown { header }),
    }
}

fn copy(words: &Words<'_>, also_to: Option<u64>) -> Result<(Packet, u64), Unreadable> {
    let bytes = u64::from(bits(words.dword(1)?, 0, 30)) + 1;
    let length = if also_to.is_some() { 9 } else { 7 };
    Ok((Packet::Copy { from: words.quad(3)?, to: words.quad(5)?, also_to, bytes }, length))
}

fn write(words: &Words<'_>) -> Result<(Packet, u64), Unreadable> {
    const HEAD: u64 = 4;
    let count = u64::from(bits(words.dword(3)?, 0, 20)) + 1;
    let dwords = (HEAD..HEAD + count).map(|index| words.dword(index)).collect::<Result<_, _>>()?;
    Ok((Packet::Write { to: words.quad(1)?, dwords }, HEAD + count))
}

fn poll(words: &Words<'_>, header: u32) -> Result<(Packet, u64), Unreadable> {
    const LENGTH: u64 = 6;
    words.dword(LENGTH - 1)?;
    // A poll of a register is how the host data path is flushed: nothing that memory would show.
    if bits(header, 31, 1) == 0 || bits(header, 26, 1) == 1 {
        return Ok((Packet::Nothing, LENGTH));
    }
    let condition = condition(header)?;
    let (at, mask) = (words.quad(1)?, u64::from(words.dword(4)?));
    Ok((Packet::Poll { at, mask, condition, reference: Value::Dword(words.dword(3)?) }, LENGTH))
}

fn poll_quad(words: &Words<'_>, header: u32) -> Result<(Packet, u64), Unreadable> {
    const LENGTH: u64 = 8;
    words.dword(LENGTH - 1)?;
    let condition = condition(header)?;
    let (at, mask) = (words.quad(1)?, words.quad(5)?);
    Ok((Packet::Poll { at, mask, condition, reference: Value::Quad(words.quad(3)?) }, LENGTH))
}

fn condition(header: u32) -> Result<Condition, Unreadable> {
    Ok(match bits(header, 28, 3) {
        0 => Condition::Always,
        1 => Condition::Less,
        2 => Condition::LessOrEqual,
        3 => Condition::Equal,
        4 => Condition::NotEqual,
        5 => Condition::GreaterOrEqual,
        6 => Condition::Greater,
        _ => return Err(Unreadable::Unknown { header }),
    })
}

fn atomic(words: &Words<'_>, header: u32) -> Result<(Packet, u64), Unreadable> {
    words.dword(7)?;
    let code = bits(header, 25, 7);
    // Bit 5 is the width; bit 6 says that nobody takes the old value, which makes no difference here.
    let operation = match code & 0x1F {
        7 => Atomic::Swap,
        8 => Atomic::CompareSwap,
        15 => Atomic::Add,
        16 => Atomic::Subtract,
        17 => Atomic::SignedMinimum,
        18 => Atomic::Minimum,
        19 => Atomic::SignedMaximum,
        20 => Atomic::Maximum,
        21 => Atomic::And,
        22 => Atomic::Or,
        23 => Atomic::Xor,
        _ => return Err(Unreadable::Unknown { header }),
    };
    let wide = code & 0x20 != 0;
    let source = if wide { Value::Quad(words.quad(3)?) } else { Value::Dword(words.dword(3)?) };
    let until_equal = bits(header, 16, 1) == 1 && operation == Atomic::CompareSwap;
    let (at, compare) = (words.quad(1)?, words.quad(5)?);
    Ok((Packet::Atomic { at, operation, source, compare, until_equal }, 8))
}

fn fill(words: &Words<'_>, header: u32) -> Result<(Packet, u64), Unreadable> {
    let (to, value, count) = (words.quad(1)?, words.dword(3)?, u64::from(bits(words.dword(4)?, 0, 30)));
    let [byte, ..] = value.to_le_bytes();
    let (pattern, bytes) = match bits(header, 30, 2) {
        0 => (Pattern::Byte(byte), count + 1),
        1 => (Pattern::Word(value as u16), count / 2 * 2 + 2),
        2 => (Pattern::Dword(value), count / 4 * 4 + 4),
        _ => return Err(Unreadable::Unknown { header }),
    };
    Ok((Packet::Fill { to, bytes, pattern }, 5))
}

/// Where the fields of a box copy lie.
struct BoxFields {
    x_bits: u32,
    z_bits: u32,
    pitch_at: u32,
    slice_bits: u32,
}

fn copy_box(words: &Words<'_>, header: u32, layout: Layout) -> Result<CopyBox, Unreadable> {
    let fields = match layout {
        Layout::Classic => BoxFields { x_bits: 14, z_bits: 11, pitch_at: 13, slice_bits: 28 },
        Layout::Gfx12 => BoxFields { x_bits: 16, z_bits: 14, pitch_at: 16, slice_bits: 32 },
    };
    let field = |dword: u32, at, width| u64::from(bits(dword, at, width));
    let volume = |at: u64| {
        let (xy, z_pitch, slice) = (words.dword(at + 2)?, words.dword(at + 3)?, words.dword(at + 4)?);
        let start =
            [field(xy, 0, fields.x_bits), field(xy, 16, fields.x_bits), field(z_pitch, 0, fields.z_bits)];
        let pitch = field(z_pitch, fields.pitch_at, 32 - fields.pitch_at) + 1;
        Ok(Volume { base: words.quad(at)?, start, pitch, slice: field(slice, 0, fields.slice_bits) + 1 })
    };
    let (xy, z) = (words.dword(11)?, words.dword(12)?);
    let extent =
        [field(xy, 0, fields.x_bits) + 1, field(xy, 16, fields.x_bits) + 1, field(z, 0, fields.z_bits) + 1];
    Ok(CopyBox { from: volume(1)?, to: volume(6)?, extent, element: bits(header, 29, 3) })
}

fn bits(dword: u32, at: u32, width: u32) -> u32 {
    let shifted = dword >> at;
    if width >= 32 { shifted } else { shifted & ((1 << width) - 1) }
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
