//! The expressions of the registry, one macro for each way in which a C member is present in Rust.

/// A type under all its names; the members belong to the first.
macro_rules! structure {
    ([$($name:ident),*], [$($field:expr,)*]) => {
        Structure {
            names: &[$(Named { name: stringify!($name), size: size_of::<$name>(), align: align_of::<$name>() }),*],
            fields: &[$($field),*],
        }
    };
}

/// A member that is a field.
macro_rules! field {
    ($owner:ident, $path:literal, $($field:ident).+) => {
        Field {
            path: $path,
            place: Place::Bytes {
                offset: core::mem::offset_of!($owner, $($field).+),
                size: size_of_borrowed(|value: &$owner| &value.$($field).+),
            },
        }
    };
}

/// A member that is, or lies in, a field of a Rust union.
macro_rules! union_field {
    ($owner:ident, $path:literal, $($field:ident).+) => {
        Field {
            path: $path,
            place: Place::Bytes {
                offset: core::mem::offset_of!($owner, $($field).+),
                // SAFETY: the closure only names the field's type; `size_of_borrowed` never calls it.
                size: size_of_borrowed(|value: &$owner| unsafe { &value.$($field).+ }),
            },
        }
    };
}

/// A group of adjacent fields.
macro_rules! span {
    ($owner:ident, $path:literal, $first:ident, $last:ident) => {
        Field {
            path: $path,
            place: Place::Bytes {
                offset: core::mem::offset_of!($owner, $first),
                size: core::mem::offset_of!($owner, $last) - core::mem::offset_of!($owner, $first)
                    + size_of_borrowed(|value: &$owner| &value.$last),
            },
        }
    };
}

/// A member that a getter reads from the bytes that begin at a field.
macro_rules! view {
    ($owner:ident, $path:literal, $field:ident, $getter:ident) => {
        Field {
            path: $path,
            place: Place::Bytes {
                offset: core::mem::offset_of!($owner, $field),
                size: size_of_returned($owner::$getter),
            },
        }
    };
}

/// A bit-field: set all its bits in a zeroed value, see which bits of the word changed, read them back.
macro_rules! bits {
    ($owner:ident, $path:literal, $field:ident, $getter:ident, $setter:ident) => {
        Field {
            path: $path,
            place: Place::Bits(|| {
                let mut value = $owner::zeroed();
                value.$setter(u32::MAX);
                BitSpan::probed(core::mem::offset_of!($owner, $field), value.$field, value.$getter())
            }),
        }
    };
}

/// A table slot; the closure compiles only when the slot has the type of its function.
macro_rules! slot {
    ($table:ident, $slot:ident, $function:literal, $type:ty) => {
        Slot {
            name: stringify!($slot),
            function: $function,
            offset: {
                let _typed: fn(&$table) -> &$type = |table| &table.$slot;
                core::mem::offset_of!($table, $slot)
            },
        }
    };
}

/// An enumeration with its enumerators.
macro_rules! enumeration {
    ($name:literal, $type:ident, [$($value:ident),*]) => {
        Enumeration {
            name: $name,
            size: size_of::<$type>(),
            is_signed: is_signed(|value: $type| value.0),
            values: &[$((stringify!($value), $value.0 as i64)),*],
        }
    };
}

/// A function or callback type.
macro_rules! function {
    ($name:ident, $type:ty) => {
        Function { name: stringify!($name), shape: <$type as Callable>::SHAPE }
    };
}

/// Another name of a type.
macro_rules! alias {
    ($name:ident) => {
        Alias { name: stringify!($name), size: size_of::<$name>() }
    };
}
