//! Reader for MessagePack, the format of the metadata note, as far as that note uses it.
//!
//! Values are read in place or skipped; nothing is allocated, and nesting costs no stack.

/// Cursor over MessagePack bytes.
#[derive(Clone)]
pub(super) struct MessagePack<'data> {
    rest: &'data [u8],
}

/// One value, without the elements of an array or a map: these follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'data> {
    Unsigned(u64),
    String(&'data str),
    Array(u32),
    /// Key, value, key, value, …
    Map(u32),
    /// Nil, Boolean, negative, floating-point, binary, extension, or text that is not UTF-8.
    Other,
}

impl<'data> MessagePack<'data> {
    pub(super) const fn new(bytes: &'data [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not read yet.
    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, count: usize) -> Option<&'data [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// A big-endian number of `width` bytes.
    fn number(&mut self, width: usize) -> Option<u64> {
        Some(self.take(width)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn string(&mut self, length: usize) -> Option<Value<'data>> {
        let bytes = self.take(length)?;
        Some(std::str::from_utf8(bytes).map_or(Value::Other, Value::String))
    }

    fn other(&mut self, length: usize) -> Option<Value<'data>> {
        self.take(length).map(|_| Value::Other)
    }

    /// The next value. None where the bytes end, or at the one code that the format leaves unused.
    pub(super) fn next(&mut self) -> Option<Value<'data>> {
        let [code] = *self.take(1)?.first_chunk::<1>()?;
        match code {
            0x00..=0x7f => Some(Value::Unsigned(u64::from(code))),
            0x80..=0x8f => Some(Value::Map(u32::from(code & 0xf))),
            0x90..=0x9f => Some(Value::Array(u32::from(code & 0xf))),
            0xa0..=0xbf => self.string(usize::from(code & 0x1f)),
            0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => Some(Value::Other),
            0xc1 => None,
            // Binary and extension, the latter with a type byte: length of 1, 2 or 4 bytes.
            0xc4..=0xc6 => self.number(1 << (code - 0xc4)).and_then(|length| self.other(length as usize)),
            0xc7..=0xc9 => self.number(1 << (code - 0xc7)).and_then(|length| self.other(length as usize + 1)),
            0xca | 0xd2 => self.other(4),
            0xcb | 0xd3 => self.other(8),
            0xcc..=0xcf => self.number(1 << (code - 0xcc)).map(Value::Unsigned),
            0xd0 | 0xd1 => self.other(1 << (code - 0xd0)),
            0xd4..=0xd8 => self.other(1 + (1 << (code - 0xd4))),
            0xd9..=0xdb => self.number(1 << (code - 0xd9)).and_then(|length| self.string(length as usize)),
            0xdc | 0xdd => self.number(2 << (code - 0xdc)).map(|count| Value::Array(count as u32)),
            0xde | 0xdf => self.number(2 << (code - 0xde)).map(|count| Value::Map(count as u32)),
        }
    }

    /// Passes over the elements of `value`, nested ones too.
    pub(super) fn skip_elements(&mut self, value: Value<'_>) -> Option<()> {
        let mut open = elements(value);
        while open > 0 {
            open = open - 1 + elements(self.next()?);
        }
        Some(())
    }
}

/// How many values follow as elements.
fn elements(value: Value<'_>) -> u64 {
    match value {
        Value::Array(count) => u64::from(count),
        Value::Map(count) => 2 * u64::from(count),
        Value::Unsigned(_) | Value::String(_) | Value::Other => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_all_codes_follow_the_format() {
        // One value of each code that has a length or a payload, each followed by the marker 7.
        let cases: [&[u8]; 20] = [
            &[0xcc, 200],
            &[0xcd, 1, 0],
            &[0xce, 0, 0, 1, 0],
            &[0xcf, 0, 0, 0, 0, 0, 0, 1, 0],
            &[0xd0, 0xff],
            &[0xd1, 0xff, 0xff],
            &[0xd2, 0, 0, 0, 1],
            &[0xd3, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0xca, 0, 0, 0, 0],
            &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xc4, 2, 1, 1],
            &[0xc5, 0, 2, 1, 1],
            &[0xc6, 0, 0, 0, 2, 1, 1],
            &[0xc7, 2, 9, 1, 1],
            &[0xd4, 9, 1],
            &[0xd8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[0xa2, b'o', b'k'],
            &[0xd9, 2, b'o', b'k'],
            &[0xda, 0, 2, b'o', b'k'],
            &[0xdb, 0, 0, 0, 2, b'o', b'k'],
        ];
        for case in cases {
            let bytes = [case, &[7]].concat();
            let mut reader = MessagePack::new(&bytes);
            assert!(reader.next().is_some(), "{case:x?}");
            assert_eq!(reader.next(), Some(Value::Unsigned(7)), "{case:x?}");
        }
    }

    #[test]
    fn deep_nesting_is_skipped_without_recursion() {
        let mut bytes = vec![0x91; 1 << 20]; // arrays of one, a million deep
        bytes.push(5);
        let mut reader = MessagePack::new(&bytes);
        let outermost = reader.next().unwrap();
        assert_eq!(reader.skip_elements(outermost), Some(()));
        assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn cut_off_values_are_none() {
        assert_eq!(MessagePack::new(&[0xdb, 0, 0, 0, 9, b'x']).next(), None);
        assert_eq!(MessagePack::new(&[0x91]).skip_elements(Value::Array(1)), None);
    }
}
