//! Every access of the model to memory it does not own. The crate's only `unsafe` code besides the faces.
//!
//! Addresses come from packets, so each access first asks the host ([`Host::memory_is_valid`]) and then goes through
//! atomics: the processor's own threads, other devices and the application touch the same words at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use wavescope_core::AqlPacket;

use crate::walk::Code;
use crate::{Access, Host};

/// An access that the host or the alignment rule refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryFault {
    /// Where.
    pub(crate) address: u64,
}

/// Memory as the device sees it: GPU address = CPU address.
#[derive(Clone)]
pub(crate) struct Memory {
    host: Arc<dyn Host>,
}

/// The atomic types over which memory is accessed. Private, so that no other type gets in.
trait Word {}
impl Word for AtomicU8 {}
impl Word for AtomicU16 {}
impl Word for AtomicU32 {}
impl Word for AtomicU64 {}
impl Word for AtomicI64 {}

impl Memory {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host }
    }

    /// Whether the host lets the range be accessed.
    pub(crate) fn is_valid(&self, address: u64, bytes: u64, access: Access) -> bool {
        self.host.memory_is_valid(address, bytes, access)
    }

    /// Borrows `count` words, checked for null, alignment and the host's consent.
    fn words<W: Word>(&self, address: u64, count: usize, access: Access) -> Result<&[W], MemoryFault> {
        let fault = Err(MemoryFault { address });
        if count == 0 {
            return Ok(&[]);
        }
        if address == 0 || !address.is_multiple_of(align_of::<W>() as u64) {
            return fault;
        }
        let Some(bytes) = count.checked_mul(size_of::<W>()) else { return fault };
        if address.checked_add(bytes as u64).is_none() || bytes > isize::MAX as usize {
            return fault;
        }
        if !self.host.memory_is_valid(address, bytes as u64, access) {
            return fault;
        }
        // SAFETY: non-null, aligned and free of wrap-around by the checks above. `Host` promises that a range it
        // declares valid is mapped with this access until the queue that named it is gone, and the borrow ends
        // within the execution of one packet of that queue. `Word` is implemented for atomic integers only: every
        // bit pattern is valid for them and shared mutation is what they are for.
        Ok(unsafe { std::slice::from_raw_parts(address as *const W, count) })
    }

    fn word<W: Word>(&self, address: u64, access: Access) -> Result<&W, MemoryFault> {
        self.words(address, 1, access).map(|words| &words[0])
    }

    /// Loads a packet header: acquire, so that the rest of the packet is visible when its type is.
    #[inline]
    pub(crate) fn load_header(&self, address: u64) -> Result<u16, MemoryFault> {
        Ok(self.word::<AtomicU16>(address, Access::Read)?.load(Ordering::Acquire))
    }

    /// Gives a packet's place back: release, so that whoever reuses it sees what the packet did.
    pub(crate) fn store_header(&self, address: u64, value: u16) -> Result<(), MemoryFault> {
        self.word::<AtomicU16>(address, Access::Write)?.store(value, Ordering::Release);
        Ok(())
    }

    pub(crate) fn load_u32(&self, address: u64) -> Result<u32, MemoryFault> {
        Ok(self.word::<AtomicU32>(address, Access::Read)?.load(Ordering::Acquire))
    }

    pub(crate) fn load_u64(&self, address: u64) -> Result<u64, MemoryFault> {
        Ok(self.word::<AtomicU64>(address, Access::Read)?.load(Ordering::Acquire))
    }

    pub(crate) fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        self.word::<AtomicU32>(address, Access::Write)?.store(value, Ordering::Release);
        Ok(())
    }

    pub(crate) fn store_u64(&self, address: u64, value: u64) -> Result<(), MemoryFault> {
        self.word::<AtomicU64>(address, Access::Write)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Subtracts one from a signal's value and returns the new one.
    pub(crate) fn decrement(&self, address: u64) -> Result<i64, MemoryFault> {
        let old = self.word::<AtomicI64>(address, Access::Write)?.fetch_sub(1, Ordering::AcqRel);
        Ok(old.wrapping_sub(1))
    }

    /// Copies a packet out of the ring. Its header was loaded with acquire before.
    pub(crate) fn load_packet(&self, address: u64) -> Result<AqlPacket, MemoryFault> {
        let words = self.words::<AtomicU32>(address, 16, Access::Read)?;
        Ok(AqlPacket(std::array::from_fn(|index| words[index].load(Ordering::Relaxed))))
    }

    /// Replaces `into` by the dwords at `address`.
    pub(crate) fn load_dwords(
        &self,
        address: u64,
        count: usize,
        into: &mut Vec<u32>,
    ) -> Result<(), MemoryFault> {
        let words = self.words::<AtomicU32>(address, count, Access::Read)?;
        into.clear();
        into.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        Ok(())
    }

    /// Whether memory still holds exactly these dwords.
    pub(crate) fn equals(&self, address: u64, dwords: &[u32]) -> Result<bool, MemoryFault> {
        let words = self.words::<AtomicU32>(address, dwords.len(), Access::Read)?;
        Ok(words.iter().zip(dwords).all(|(word, &known)| word.load(Ordering::Relaxed) == known))
    }

    /// Copies bytes out.
    pub(crate) fn load_bytes<const N: usize>(&self, address: u64) -> Result<[u8; N], MemoryFault> {
        let words = self.words::<AtomicU8>(address, N, Access::Read)?;
        Ok(std::array::from_fn(|index| words[index].load(Ordering::Relaxed)))
    }

    /// Fills `into` with the bytes at `address`.
    fn copy_bytes(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let words = self.words::<AtomicU8>(address, into.len(), Access::Read)?;
        into.iter_mut().zip(words).for_each(|(byte, word)| *byte = word.load(Ordering::Relaxed));
        Ok(())
    }

    /// Writes whole dwords, little endian, as the trace unit does.
    pub(crate) fn store_dwords(&self, address: u64, dwords: &[u32]) -> Result<(), MemoryFault> {
        let words = self.words::<AtomicU32>(address, dwords.len(), Access::Write)?;
        for (word, &value) in words.iter().zip(dwords) {
            word.store(value, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Instructions are fetched like any other memory. Near the end of what is mapped only a part can be read: whole dwords,
/// as the instruction set has them.
impl Code for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut bytes = into.len();
        while bytes >= 4 && self.copy_bytes(address, &mut into[..bytes]).is_err() {
            bytes -= 4;
        }
        if bytes >= 4 { bytes } else { 0 }
    }

    fn holds(&self, address: u64, bytes: &[u8]) -> bool {
        let (known, []) = bytes.as_chunks::<4>() else { return false };
        let Ok(words) = self.words::<AtomicU32>(address, known.len(), Access::Read) else { return false };
        let there = words.iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        there.eq(known.iter().copied())
    }
}
