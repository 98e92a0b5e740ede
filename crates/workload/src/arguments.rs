//! Kernel arguments, laid out as the compiler lays them out: each at its natural alignment.

use crate::Buffer;

/// The bytes of a kernel-argument segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    bytes: Vec<u8>,
}

impl Arguments {
    /// No arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pointer to a buffer, which must outlive the dispatch.
    #[must_use]
    pub fn buffer(self, buffer: &Buffer) -> Self {
        self.aligned(&buffer.address().to_le_bytes())
    }

    /// Adds a 32-bit number.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.aligned(&value.to_le_bytes())
    }

    /// Adds a 32-bit floating-point number.
    #[must_use]
    pub fn f32(self, value: f32) -> Self {
        self.aligned(&value.to_le_bytes())
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn aligned(mut self, value: &[u8]) -> Self {
        let start = self.bytes.len().next_multiple_of(value.len());
        self.bytes.resize(start, 0);
        self.bytes.extend_from_slice(value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_at_their_own_alignment() {
        let arguments = Arguments::new().u32(1).aligned(&2_u64.to_le_bytes()).f32(1.0);
        assert_eq!(arguments.bytes().len(), 20);
        assert_eq!(arguments.bytes()[8], 2);
        assert_eq!(arguments.bytes()[16..], 1.0_f32.to_le_bytes());
    }
}
