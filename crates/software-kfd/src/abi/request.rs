//! How an ioctl request number is put together (`asm-generic/ioctl.h`).

/// `type` field of the kernel driver's requests.
pub(crate) const KFD: u8 = b'K';
/// `type` field of a render node's requests.
pub(crate) const DRM: u8 = b'd';

/// Bits 15:8.
pub(crate) const fn kind(request: u32) -> u8 {
    (request >> 8) as u8
}

/// Bits 7:0.
pub(crate) const fn number(request: u32) -> u8 {
    request as u8
}

/// Bits 29:16: size of the argument structure as the caller was compiled with.
pub(crate) const fn size(request: u32) -> usize {
    (request >> 16 & 0x3FFF) as usize
}
