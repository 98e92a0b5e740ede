//! What the compiler knows of function types: how many arguments, and how large each is.

use crate::registry::Shape;

/// A function pointer type whose [`Shape`] the compiler gives.
pub(crate) trait Callable {
    /// Sizes that go over the call.
    const SHAPE: Shape;
}

macro_rules! callable {
    ($($param:ident),*) => {
        impl<R, $($param),*> Callable for unsafe extern "C-unwind" fn($($param),*) -> R {
            const SHAPE: Shape = Shape { returns: size_of::<R>(), params: &[$(size_of::<$param>()),*] };
        }
    };
}

callable!();
callable!(A);
callable!(A, B);
callable!(A, B, C);
callable!(A, B, C, D);
callable!(A, B, C, D, E);
callable!(A, B, C, D, E, F);
callable!(A, B, C, D, E, F, G);
callable!(A, B, C, D, E, F, G, H);
callable!(A, B, C, D, E, F, G, H, I);
callable!(A, B, C, D, E, F, G, H, I, J);

/// Callback types are nullable.
impl<T: Callable> Callable for Option<T> {
    const SHAPE: Shape = T::SHAPE;
}

/// An integer type that an enumeration may be stored in.
pub(crate) trait Integer {
    /// Whether negative values fit.
    const IS_SIGNED: bool;
}

impl Integer for u32 {
    const IS_SIGNED: bool = false;
}

impl Integer for i32 {
    const IS_SIGNED: bool = true;
}

/// Whether the number that `_number` would give is signed; it is never called.
pub(crate) const fn is_signed<T, N: Integer>(_number: fn(T) -> N) -> bool {
    N::IS_SIGNED
}
