//! Which dwords of a command buffer depend on where its buffers lie.

/// Commands before their buffers have addresses: the dwords are those for buffers at address 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    dwords: Vec<u32>,
    /// The dwords as they lie in memory.
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
    /// The pairs among the relocations, made small: an instance patches hundreds of them.
    pairs: Vec<Pair>,
}

/// A relocation of [`Form::Pair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// Byte offset in the commands.
    at: u32,
    buffer: u32,
    offset: u64,
}

/// A place in the dwords that takes part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Index of the dword (of the first, with [`Form::Pair`]).
    pub dword: u32,
    /// Which of the program's buffers.
    pub buffer: u8,
    /// How the address is written.
    pub form: Form,
    /// Bytes from the buffer's start.
    pub offset: u64,
}

/// Which part of an address a dword holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Two dwords: bits 31:0, then bits 63:32.
    Pair,
    /// Bits 39:8.
    Shr8,
    /// Bits 47:40.
    Shr40,
    /// Bits 43:12.
    Shr12,
    /// Bits 47:44, joined with other fields of the register.
    Shr44 {
        /// The other fields.
        fields: u32,
    },
}

impl Commands {
    /// The dwords, with every buffer at address 0.
    pub fn dwords(&self) -> &[u32] {
        &self.dwords
    }

    /// Where addresses go in.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Size in bytes, rounded up to the 256 that each command buffer takes in its allocation.
    pub fn padded_bytes(&self) -> u64 {
        self.bytes().next_multiple_of(256)
    }

    /// Joins dwords and the places that take addresses.
    pub(crate) fn new(dwords: Vec<u32>, relocations: Vec<Relocation>) -> Self {
        let bytes = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        let pairs = relocations.iter().filter(|relocation| relocation.form == Form::Pair);
        let pairs = pairs.map(|relocation| Pair {
            at: relocation.dword * 4,
            buffer: relocation.buffer.into(),
            offset: relocation.offset,
        });
        let pairs = pairs.collect();
        Self { dwords, bytes, relocations, pairs }
    }

    /// Puts the commands into `out` (which is cleared first) as they lie in memory, for buffers at `bases`. A
    /// buffer without a base keeps address 0.
    pub fn resolve(&self, bases: &[u64], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.bytes);
        let base = |buffer: usize| bases.get(buffer).copied().unwrap_or(0);
        for pair in &self.pairs {
            put(out, pair.at as usize, base(pair.buffer as usize).wrapping_add(pair.offset).to_le_bytes());
        }
        if self.pairs.len() == self.relocations.len() {
            return;
        }
        for relocation in self.relocations.iter().filter(|relocation| relocation.form != Form::Pair) {
            let address = base(relocation.buffer.into()).wrapping_add(relocation.offset);
            let dword = relocation.form.first_dword(address);
            put(out, relocation.dword as usize * 4, dword.to_le_bytes());
        }
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}

impl Form {
    /// What the (first) dword holds for an address.
    pub const fn first_dword(self, address: u64) -> u32 {
        match self {
            Self::Pair => address as u32,
            Self::Shr8 => (address >> 8) as u32,
            Self::Shr40 => (address >> 40) as u32 & 0xFF,
            Self::Shr12 => (address >> 12) as u32,
            Self::Shr44 { fields } => (address >> 44) as u32 & 0xF | fields,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Address and dwords of the recorded gfx1100 trace start: buffer at 0x2111_1123_0000.
    #[test]
    fn each_form_takes_its_bits() {
        let at = |dword, form| Relocation { dword, buffer: 1, form, offset: 0x10 };
        let relocations = vec![
            at(0, Form::Pair),
            at(2, Form::Shr8),
            at(3, Form::Shr40),
            at(4, Form::Shr12),
            at(5, Form::Shr44 { fields: 0x1F_E100 }),
        ];
        let commands = Commands::new(vec![0; 6], relocations);
        let mut out = vec![7; 3];
        commands.resolve(&[0, 0x2111_1123_0000], &mut out);
        let dwords: Vec<_> = out.as_chunks().0.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
        assert_eq!(dwords, [0x1123_0010, 0x2111, 0x1111_2300, 0x21, 0x1111_1230, 0x1F_E102]);
    }
}
