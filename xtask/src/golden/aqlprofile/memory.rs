//! Memory that hands out the recorded addresses and writes down what is done to it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use serde_json::Value;
use wavescope_aql_profile::{AllocationRequest, Memory, Status};

use super::value::{list, number};
use crate::golden::Outcome;

/// Trace buffers up to this size are filled with 0xCC by the recording; larger ones read as zero.
const FILLED: u64 = 64 << 20;

/// One allocation.
#[derive(Debug)]
struct Allocation {
    base: u64,
    request: AllocationRequest,
    /// Contents, only of buffers that the host reads or writes.
    bytes: Vec<u8>,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(super) struct Log {
    allocations: Vec<Allocation>,
    /// [allocation, offset, bytes] of each copy into a buffer.
    pub(super) copies_in: Vec<Vec<u64>>,
    /// The same of each copy out of one.
    pub(super) copies_out: Vec<Vec<u64>>,
    /// Offset, length and contents of each direct write to allocation 0.
    pub(super) stores: Vec<(u64, Vec<u8>)>,
    /// Allocations in the order in which they were freed.
    pub(super) freed: Vec<u64>,
}

/// The recorder.
#[derive(Debug)]
pub(super) struct Recorder {
    bases: Vec<u64>,
    /// The allocation that fails, if one shall.
    failing: Option<usize>,
    log: Mutex<Log>,
}

impl Recorder {
    /// Hands out the bases of the recorded allocations `allocs`, then made-up ones.
    pub(super) fn new(allocs: &Value) -> Result<Self> {
        let bases = list(allocs)?.iter().map(|entry| number(&entry["base"])).collect::<Result<_>>()?;
        Ok(Self { bases, failing: None, log: Mutex::default() })
    }

    /// Hands out made-up bases and refuses allocation `failing`.
    pub(super) fn failing_at(failing: usize) -> Self {
        Self { bases: Vec::new(), failing: Some(failing), log: Mutex::default() }
    }

    /// What happened so far.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the requests with the recorded ones.
    pub(super) fn compare(&self, allocs: &Value, outcome: &mut Outcome) -> Result<()> {
        let log = self.log();
        let recorded = list(allocs)?;
        outcome.compare("allocs.len", &recorded.len(), &log.allocations.len());
        for (at, (entry, found)) in recorded.iter().zip(&log.allocations).enumerate() {
            let flags = found.request.flags;
            outcome.compare(
                format_args!("allocs[{at}].size"),
                &number(&entry["size"])?,
                &found.request.bytes,
            );
            let parts = [
                ("flags", u64::from(flags.0)),
                ("device", flags.device_access().into()),
                ("host", flags.host_access().into()),
                ("hint", flags.hint().0.into()),
            ];
            for (key, value) in parts {
                outcome.compare(format_args!("allocs[{at}].{key}"), &number(&entry[key])?, &value);
            }
        }
        Ok(())
    }
}

impl Log {
    /// How many allocations were asked for and granted.
    pub(super) fn granted(&self) -> usize {
        self.allocations.len()
    }

    /// The dwords at an offset of an allocation.
    pub(super) fn dwords(&self, allocation: u64, offset: u64, count: u64) -> Vec<u32> {
        let bytes = self.allocations.get(allocation as usize).map_or(&[][..], |found| &found.bytes);
        let (from, to) = (offset as usize, (offset + count * 4) as usize);
        let (dwords, _) = bytes.get(from..to).unwrap_or(&[]).as_chunks();
        dwords.iter().map(|dword| u32::from_le_bytes(*dword)).collect()
    }

    /// Replaces an allocation's contents from its start.
    pub(super) fn fill(&mut self, allocation: usize, contents: &[u8]) {
        if let Some(found) = self.allocations.get_mut(allocation) {
            for (place, byte) in found.bytes.iter_mut().zip(contents) {
                *place = *byte;
            }
        }
    }

    /// The allocation that begins at or last before an address, and the offset. (Upstream copies no bytes from
    /// behind a buffer of size 0.)
    fn find(&self, address: u64) -> Option<(usize, u64)> {
        let before = self.allocations.iter().enumerate().filter(|(_, found)| found.base <= address);
        let (index, found) = before.max_by_key(|(_, found)| found.base)?;
        Some((index, address - found.base))
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> Option<(usize, u64)> {
        let (index, offset) = self.find(address)?;
        let place = self.allocations[index].bytes.get_mut(offset as usize..)?.get_mut(..bytes.len())?;
        place.copy_from_slice(bytes);
        Some((index, offset))
    }
}

impl Memory for Recorder {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let mut log = self.log();
        let index = log.allocations.len();
        if self.failing == Some(index) {
            return Err(Status::OUT_OF_RESOURCES);
        }
        let made_up = 0x7000_0000_0000 + ((index as u64) << 40);
        let base = self.bases.get(index).copied().unwrap_or(made_up);
        let kept = if request.flags.host_access() { request.bytes as usize } else { 0 };
        log.allocations.push(Allocation { base, request, bytes: vec![0; kept] });
        Ok(base)
    }

    fn free(&self, address: u64) {
        let mut log = self.log();
        let freed = log.allocations.iter().position(|found| found.base == address);
        log.freed.push(freed.map_or(u64::MAX, |index| index as u64));
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        let mut log = self.log();
        let (index, offset) = log.put(address, bytes).unwrap_or((usize::MAX, address));
        log.copies_in.push(vec![index as u64, offset, bytes.len() as u64]);
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        let mut log = self.log();
        let (index, offset) = log.find(address).unwrap_or((usize::MAX, address));
        let filled = log.allocations.get(index).is_some_and(|found| found.request.bytes <= FILLED);
        // The other buffers read as the zeros that a fresh `into` holds; writing those would touch gigabytes.
        if filled {
            into.fill(0xCC);
        }
        log.copies_out.push(vec![index as u64, offset, into.len() as u64]);
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        let mut log = self.log();
        if let Some((0, offset)) = log.put(address, bytes) {
            log.stores.push((offset, bytes.to_vec()));
        }
    }

    fn load(&self, address: u64, into: &mut [u8]) {
        let log = self.log();
        let found = log.find(address).and_then(|(index, offset)| {
            log.allocations[index].bytes.get(offset as usize..)?.get(..into.len())
        });
        match found {
            Some(bytes) => into.copy_from_slice(bytes),
            None => into.fill(0),
        }
    }
}
