//! What the generated files say once per item, written out here: enumerations and zeroed values.

/// Declares C enumerations as numbers with named values. A value that no name stands for (from a newer library)
/// stays what it is: there is nothing to be undefined about.
macro_rules! c_enum {
    ($(#[$doc:meta])* $name:ident: $repr:ty { $($value:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $repr);

        $(
            #[doc = concat!("Value ", stringify!($number), " of [`", stringify!($name), "`].")]
            pub const $value: $name = $name($number);
        )*

        impl $name {
            /// The C name of the value; of several names the one that sorts first; `None` for an unknown value.
            pub const fn name(self) -> Option<&'static str> {
                $(
                    if self.0 == $value.0 {
                        return Some(stringify!($value));
                    }
                )*
                None
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
}

/// Gives C types `zeroed()` and `Default`: all bytes zero, as `= {}` does in C.
macro_rules! zeroed {
    ($($name:ident,)*) => { $(
        impl $name {
            /// A value of all zero bytes: numbers 0, pointers and function pointers null.
            pub const fn zeroed() -> Self {
                // SAFETY: the generator builds these types from integers, `bool`s, raw pointers, `Option`s of
                // function pointers, and arrays, structs and unions of them. All-zero bytes are a value of each.
                unsafe { core::mem::zeroed() }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::zeroed()
            }
        }
    )* };
}
