//! The compiled side: plain tables of figures, filled by the generated files through the macros.

/// What our compiler made of one facts file.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// Structs and unions.
    pub structs: &'static [Structure],
    /// API tables.
    pub tables: &'static [Structure],
    /// Slots of each API table, in order.
    pub slots: &'static [(&'static str, &'static [Slot])],
    /// Enumerations.
    pub enums: &'static [Enumeration],
    /// Functions.
    pub functions: &'static [Function],
    /// Callback types.
    pub callbacks: &'static [Function],
    /// Other names of types.
    pub aliases: &'static [Alias],
    /// Version constants.
    pub versions: &'static [(&'static str, u32)],
}

/// A struct or union under one or more names.
#[derive(Debug, Clone, Copy)]
pub struct Structure {
    /// Its names: typedef first, then tags.
    pub names: &'static [Named],
    /// Its members, those of nested anonymous groups included.
    pub fields: &'static [Field],
}

/// One name of a type, measured under that name.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// The C name.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Bytes.
    pub align: usize,
}

/// One member.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The C path, e.g. `pmc_data.event`; a group without a name is `<anon>[k]`.
    pub path: &'static str,
    /// Where it lies.
    pub place: Place,
}

/// Where a member lies.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Whole bytes.
    Bytes {
        /// From the start of the outermost type.
        offset: usize,
        /// How many.
        size: usize,
    },
    /// Bits, found by setting them all and looking which changed.
    Bits(fn() -> BitSpan),
}

/// A run of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitSpan {
    /// From the start of the outermost type.
    pub bit_offset: usize,
    /// How many; 0 when getter and setter do not agree.
    pub bit_width: usize,
}

impl BitSpan {
    /// The span of `set_bits` in a word at byte `offset`, if `read_back` is what a getter must give for it.
    pub fn probed(offset: usize, set_bits: u32, read_back: u32) -> Self {
        let shift = set_bits.trailing_zeros();
        let agrees = set_bits.checked_shr(shift) == Some(read_back);
        Self {
            bit_offset: offset * 8 + shift as usize,
            bit_width: if agrees { set_bits.count_ones() as usize } else { 0 },
        }
    }
}

/// A slot of an API table.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// The member's name.
    pub name: &'static str,
    /// The function that belongs there.
    pub function: &'static str,
    /// Bytes from the start of the table.
    pub offset: usize,
}

/// An enumeration.
#[derive(Debug, Clone, Copy)]
pub struct Enumeration {
    /// The C name.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Whether negative values fit.
    pub is_signed: bool,
    /// Enumerators.
    pub values: &'static [(&'static str, i64)],
}

/// A function or callback type.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// The C name.
    pub name: &'static str,
    /// Sizes that go over the call.
    pub shape: Shape,
}

/// Sizes of what a call passes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Of the result; 0 for none.
    pub returns: usize,
    /// Of each argument.
    pub params: &'static [usize],
}

/// Another name of a type.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// The C name.
    pub name: &'static str,
    /// Bytes; 0 for a type that is only pointed to.
    pub size: usize,
}

/// The size of the field that `_get` would borrow; it is never called.
pub(crate) const fn size_of_borrowed<T, F>(_get: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// The size of what `_get` would return; it is never called.
pub(crate) const fn size_of_returned<T, F>(_get: fn(&T) -> F) -> usize {
    size_of::<F>()
}
