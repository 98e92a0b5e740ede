//! Every access of an SDMA engine to memory. Each asks the GPU's page tables first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::{ptr, slice};

use wavescope_software_gpu::{Access, Host};

use crate::driver::host::GpuHost;

/// An access that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) address: u64,
    pub(super) access: Access,
}

/// Memory as the engine sees it: GPU address = CPU address.
#[derive(Clone)]
pub(super) struct Memory {
    host: Arc<GpuHost>,
}

/// Longest piece in which bytes are moved: page tables are asked for each.
const PIECE: u64 = 1 << 21;

impl Memory {
    pub(super) fn new(host: Arc<GpuHost>) -> Self {
        Self { host }
    }

    fn check(&self, address: u64, bytes: u64, access: Access) -> Result<(), Fault> {
        let valid = address != 0 && self.host.memory_is_valid(address, bytes, access);
        if valid { Ok(()) } else { Err(Fault { address, access }) }
    }

    /// A dword that others may write at the same time.
    pub(super) fn dword(&self, address: u64, access: Access) -> Result<&AtomicU32, Fault> {
        let address = address & !3;
        self.check(address, 4, access)?;
        // SAFETY: aligned, not null and mapped with this access as `check` found; the promise of `Host` keeps it
        // mapped while a packet names it, and the borrow ends with the packet.
        Ok(unsafe { AtomicU32::from_ptr(address as *mut u32) })
    }

    /// As [`dword`](Self::dword), with 64 bits.
    pub(super) fn quad(&self, address: u64, access: Access) -> Result<&AtomicU64, Fault> {
        let address = address & !7;
        self.check(address, 8, access)?;
        // SAFETY: as in `dword`.
        Ok(unsafe { AtomicU64::from_ptr(address as *mut u64) })
    }

    /// Moves bytes.
    pub(super) fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), Fault> {
        for (at, piece) in pieces(bytes) {
            let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
            self.check(from, piece, Access::Read)?;
            self.check(to, piece, Access::Write)?;
            // SAFETY: both ranges are mapped as `check` found and stay so while the packet names them. The application
            // leaves them alone until the packet's signal tells, as it must with hardware; they may overlap.
            unsafe { ptr::copy(from as *const u8, to as *mut u8, piece as usize) };
        }
        Ok(())
    }

    /// Lets two blocks change places.
    pub(super) fn swap(&self, a: u64, b: u64, bytes: u64) -> Result<(), Fault> {
        for (at, piece) in pieces(bytes) {
            let (a, b) = (a.wrapping_add(at), b.wrapping_add(at));
            self.check(a, piece, Access::Write)?;
            self.check(b, piece, Access::Write)?;
            if a.abs_diff(b) < piece {
                return Err(Fault { address: b, access: Access::Write });
            }
            // SAFETY: both ranges are mapped for writing, as `check` found, and do not overlap; see `copy`.
            unsafe { ptr::swap_nonoverlapping(a as *mut u8, b as *mut u8, piece as usize) };
        }
        Ok(())
    }

    /// Repeats `pattern` over `bytes` bytes, a whole number of patterns.
    pub(super) fn fill<const N: usize>(&self, to: u64, bytes: u64, pattern: [u8; N]) -> Result<(), Fault> {
        for (at, piece) in pieces(bytes) {
            let to = to.wrapping_add(at);
            self.check(to, piece, Access::Write)?;
            // SAFETY: the range is mapped for writing, as `check` found, and arrays of bytes need no alignment and take
            // any value; see `copy`.
            let patterns = unsafe { slice::from_raw_parts_mut(to as *mut [u8; N], piece as usize / N) };
            patterns.fill(pattern);
        }
        Ok(())
    }

    /// Writes dwords.
    pub(super) fn write(&self, to: u64, dwords: &[u32]) -> Result<(), Fault> {
        let bytes = size_of_val(dwords);
        self.check(to, bytes as u64, Access::Write)?;
        // SAFETY: the range is mapped for writing, as `check` found, and no part of the slice; see `copy`.
        unsafe { ptr::copy_nonoverlapping(dwords.as_ptr().cast::<u8>(), to as *mut u8, bytes) };
        Ok(())
    }
}

/// Offset and length of each piece.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(PIECE)).map(move |piece| (piece * PIECE, (bytes - piece * PIECE).min(PIECE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once() {
        assert_eq!(pieces(0).count(), 0);
        let all: Vec<_> = pieces(PIECE * 2 + 5).collect();
        assert_eq!(all, [(0, PIECE), (PIECE, PIECE), (2 * PIECE, 5)]);
    }
}
