//! Code objects of our own kernels, built from `kernels/*.cl` (see `kernels/README.md`).

use crate::Error;

macro_rules! code_objects {
    ($($target:literal),*) => {
        /// Target, vectors, tiles.
        const CODE_OBJECTS: &[(&str, &[u8], &[u8])] = &[$((
            $target,
            include_bytes!(concat!("../kernels/vectors-", $target, ".co")),
            include_bytes!(concat!("../kernels/tiles-", $target, ".co")),
        )),*];
    };
}

code_objects!("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201");

/// Names of the kernels in [`vectors`].
pub const VECTOR_KERNELS: [&str; 4] = ["empty", "vector_add", "saxpy", "collatz"];

/// Names of the kernels in [`tiles`].
pub const TILE_KERNELS: [&str; 3] = ["reduce_sum", "transpose", "stencil"];

/// Targets with kernels.
pub fn targets() -> impl Iterator<Item = &'static str> {
    CODE_OBJECTS.iter().map(|(target, ..)| *target)
}

/// Kernels without work-group co-operation: `empty`; `vector_add` and `saxpy` over vectors; `collatz` with a
/// divergent loop.
///
/// # Errors
/// [`Error::NoKernels`] for a target that none were built for.
pub fn vectors(target: &str) -> Result<&'static [u8], Error> {
    find(target).map(|(vectors, _)| vectors)
}

/// Kernels with LDS and barriers: `reduce_sum` (groups of 256), `transpose` (groups of 16 x 16), and the 2-D
/// `stencil`.
///
/// # Errors
/// [`Error::NoKernels`] for a target that none were built for.
pub fn tiles(target: &str) -> Result<&'static [u8], Error> {
    find(target).map(|(_, tiles)| tiles)
}

fn find(target: &str) -> Result<(&'static [u8], &'static [u8]), Error> {
    let found = CODE_OBJECTS.iter().find(|(name, ..)| *name == target);
    let found = found.map(|&(_, vectors, tiles)| (vectors, tiles));
    found.ok_or_else(|| Error::NoKernels {
        target: target.to_owned(),
        known: targets().collect::<Vec<_>>().join(", "),
    })
}
