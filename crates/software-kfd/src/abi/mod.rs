//! Argument structures and request numbers of the kernel's interface, as the real runtime passes them.

pub(crate) mod drm;
pub(crate) mod kfd;
pub(crate) mod request;

#[cfg(test)]
mod header_tests;
