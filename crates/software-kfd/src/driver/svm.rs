//! Attributes of shared virtual memory: what managed memory asks for and reads back.
//!
//! The model accesses the process's memory as it is, so attributes change nothing but what
//! `KFD_IOCTL_SVM_OP_GET_ATTR` answers; its rules are in `linux/kfd_ioctl.h`.

use std::collections::BTreeMap;

use super::backing::PAGE;
use crate::abi::kfd::SvmAttribute;
use crate::errno::{Answer, Errno};

/// `KFD_IOCTL_SVM_ATTR_*`.
mod kind {
    pub(super) const PREFERRED_LOC: u32 = 0;
    pub(super) const PREFETCH_LOC: u32 = 1;
    pub(super) const ACCESS: u32 = 2;
    pub(super) const ACCESS_IN_PLACE: u32 = 3;
    pub(super) const NO_ACCESS: u32 = 4;
    pub(super) const SET_FLAGS: u32 = 5;
    pub(super) const CLR_FLAGS: u32 = 6;
    pub(super) const GRANULARITY: u32 = 7;
}

/// `KFD_IOCTL_SVM_LOCATION_UNDEFINED`.
const UNDEFINED: u32 = u32::MAX;
/// `KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT`.
const DEFAULT_FLAGS: u32 = 3;
/// Binary logarithm of the pages that migrate together.
const DEFAULT_GRANULARITY: u32 = 9;
/// Largest granularity that the kernel takes.
const GRANULARITY_LIMIT: u32 = 0x3F;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Attributes {
    preferred: u32,
    prefetch: u32,
    flags: u32,
    granularity: u32,
    /// By GPU id: `ACCESS`, `ACCESS_IN_PLACE` or, for all that are not named, `NO_ACCESS`.
    access: BTreeMap<u32, u32>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            preferred: UNDEFINED,
            prefetch: UNDEFINED,
            flags: DEFAULT_FLAGS,
            granularity: DEFAULT_GRANULARITY,
            access: BTreeMap::new(),
        }
    }
}

impl Attributes {
    fn set(&mut self, attribute: SvmAttribute) {
        let SvmAttribute { kind, value } = attribute;
        match kind {
            kind::PREFERRED_LOC => self.preferred = value,
            kind::PREFETCH_LOC => self.prefetch = value,
            kind::SET_FLAGS => self.flags |= value,
            kind::CLR_FLAGS => self.flags &= !value,
            kind::GRANULARITY => self.granularity = value.min(GRANULARITY_LIMIT),
            _ => drop(self.access.insert(value, kind)),
        }
    }

    fn access(&self, gpu_id: u32) -> u32 {
        self.access.get(&gpu_id).copied().unwrap_or(kind::NO_ACCESS)
    }
}

/// The ranges with attributes of their own. They never overlap.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    ranges: BTreeMap<u64, (u64, Attributes)>,
}

impl SharedMemory {
    /// `KFD_IOCTL_SVM_OP_SET_ATTR`. `is_gpu` knows the GPU ids.
    pub(super) fn set(
        &mut self,
        start: u64,
        bytes: u64,
        attributes: &[SvmAttribute],
        is_gpu: impl Fn(u32) -> bool,
    ) -> Answer {
        let end = checked_end(start, bytes)?;
        if !attributes.iter().all(|attribute| is_valid(*attribute, &is_gpu)) {
            return Err(Errno(libc::EINVAL));
        }
        self.split(start);
        self.split(end);
        let mut at = start;
        let inside: Vec<_> = self.ranges.range(start..end).map(|(base, range)| (*base, range.0)).collect();
        for (base, range_end) in inside.into_iter().chain([(end, end)]) {
            if at < base {
                self.ranges.insert(at, (base, Attributes::default()));
            }
            at = range_end;
        }
        for (_, (_, range)) in self.ranges.range_mut(start..end) {
            attributes.iter().for_each(|attribute| range.set(*attribute));
        }
        Ok(())
    }

    /// `KFD_IOCTL_SVM_OP_GET_ATTR`: what all pages of the range have in common.
    pub(super) fn get(
        &self,
        start: u64,
        bytes: u64,
        attributes: &mut [SvmAttribute],
        is_gpu: impl Fn(u32) -> bool,
    ) -> Answer {
        let end = checked_end(start, bytes)?;
        let pages = self.covering(start, end);
        for attribute in attributes {
            let all = |field: fn(&Attributes) -> u32| {
                let first = field(&pages[0]);
                if pages.iter().all(|page| field(page) == first) { first } else { UNDEFINED }
            };
            match attribute.kind {
                kind::PREFERRED_LOC => attribute.value = all(|page| page.preferred),
                kind::PREFETCH_LOC => attribute.value = all(|page| page.prefetch),
                kind::SET_FLAGS => {
                    attribute.value = pages.iter().fold(u32::MAX, |all, page| all & page.flags)
                }
                kind::CLR_FLAGS => attribute.value = !pages.iter().fold(0, |any, page| any | page.flags),
                kind::GRANULARITY => {
                    attribute.value = pages.iter().map(|page| page.granularity).min().unwrap_or(0);
                }
                kind::ACCESS if is_gpu(attribute.value) => {
                    let gpu = attribute.value;
                    // The weakest: no access before in place before access.
                    attribute.kind =
                        pages.iter().map(|page| page.access(gpu)).max().unwrap_or(kind::NO_ACCESS);
                }
                _ => return Err(Errno(libc::EINVAL)),
            }
        }
        Ok(())
    }

    /// Attributes of every part of a range, gaps included. Never empty.
    fn covering(&self, start: u64, end: u64) -> Vec<Attributes> {
        let before = self.ranges.range(..start).next_back().filter(|(_, (range_end, _))| *range_end > start);
        let mut pages = Vec::new();
        let mut at = start;
        for (base, (range_end, attributes)) in before.into_iter().chain(self.ranges.range(start..end)) {
            if at < *base {
                pages.push(Attributes::default());
            }
            pages.push(attributes.clone());
            at = *range_end;
        }
        if at < end {
            pages.push(Attributes::default());
        }
        pages
    }

    /// Makes `at` a border, if it lies inside a range.
    fn split(&mut self, at: u64) {
        let Some((_, (end, attributes))) = self.ranges.range_mut(..at).next_back() else { return };
        if *end > at {
            let upper = (*end, attributes.clone());
            *end = at;
            self.ranges.insert(at, upper);
        }
    }
}

fn checked_end(start: u64, bytes: u64) -> Result<u64, Errno> {
    let aligned = start.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE) && bytes > 0;
    start.checked_add(bytes).filter(|_| aligned).ok_or(Errno(libc::EINVAL))
}

fn is_valid(attribute: SvmAttribute, is_gpu: &impl Fn(u32) -> bool) -> bool {
    let SvmAttribute { kind, value } = attribute;
    match kind {
        // 0 is system memory.
        kind::PREFERRED_LOC | kind::PREFETCH_LOC => value == 0 || value == UNDEFINED || is_gpu(value),
        kind::ACCESS | kind::ACCESS_IN_PLACE | kind::NO_ACCESS => is_gpu(value),
        kind::SET_FLAGS | kind::CLR_FLAGS | kind::GRANULARITY => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(memory: &mut SharedMemory, pages: std::ops::Range<u64>, kind: u32, value: u32) -> Answer {
        let bytes = (pages.end - pages.start) * PAGE;
        memory.set(pages.start * PAGE, bytes, &[SvmAttribute { kind, value }], |id| id < 3)
    }

    fn get(memory: &SharedMemory, pages: std::ops::Range<u64>, kind: u32, value: u32) -> SvmAttribute {
        let mut attribute = [SvmAttribute { kind, value }];
        let bytes = (pages.end - pages.start) * PAGE;
        memory.get(pages.start * PAGE, bytes, &mut attribute, |id| id < 3).unwrap();
        attribute[0]
    }

    #[test]
    fn later_setting_splits_an_earlier_range() {
        let mut memory = SharedMemory::default();
        set(&mut memory, 10..20, kind::PREFERRED_LOC, 1).unwrap();
        set(&mut memory, 12..14, kind::PREFERRED_LOC, 2).unwrap();
        assert_eq!(get(&memory, 10..12, kind::PREFERRED_LOC, 0).value, 1);
        assert_eq!(get(&memory, 12..14, kind::PREFERRED_LOC, 0).value, 2);
        assert_eq!(get(&memory, 14..20, kind::PREFERRED_LOC, 0).value, 1);
        // Different pages differ: the header says 0xffffffff.
        assert_eq!(get(&memory, 10..20, kind::PREFERRED_LOC, 0).value, UNDEFINED);
        assert_eq!(get(&memory, 19..21, kind::PREFERRED_LOC, 0).value, UNDEFINED);
    }

    #[test]
    fn flags_are_those_of_all_pages_and_clear_ones_those_of_none() {
        let mut memory = SharedMemory::default();
        set(&mut memory, 0..1, kind::CLR_FLAGS, u32::MAX).unwrap();
        set(&mut memory, 0..1, kind::SET_FLAGS, 0b0110).unwrap();
        set(&mut memory, 1..2, kind::CLR_FLAGS, u32::MAX).unwrap();
        set(&mut memory, 1..2, kind::SET_FLAGS, 0b0011).unwrap();
        assert_eq!(get(&memory, 0..2, kind::SET_FLAGS, 0).value, 0b0010);
        assert_eq!(get(&memory, 0..2, kind::CLR_FLAGS, 0).value, !0b0111);
    }

    #[test]
    fn access_of_a_gpu_comes_back_as_the_attribute_type() {
        let mut memory = SharedMemory::default();
        set(&mut memory, 0..4, kind::ACCESS, 1).unwrap();
        set(&mut memory, 0..2, kind::ACCESS_IN_PLACE, 2).unwrap();
        assert_eq!(get(&memory, 0..4, kind::ACCESS, 1).kind, kind::ACCESS);
        assert_eq!(get(&memory, 0..2, kind::ACCESS, 2).kind, kind::ACCESS_IN_PLACE);
        assert_eq!(get(&memory, 0..4, kind::ACCESS, 2).kind, kind::NO_ACCESS);
    }

    #[test]
    fn unknown_gpus_attributes_and_odd_ranges_are_invalid() {
        let mut memory = SharedMemory::default();
        assert_eq!(set(&mut memory, 0..1, kind::ACCESS, 7), Err(Errno(libc::EINVAL)));
        assert_eq!(set(&mut memory, 0..1, 99, 0), Err(Errno(libc::EINVAL)));
        assert_eq!(set(&mut memory, 5..5, kind::ACCESS, 1), Err(Errno(libc::EINVAL)));
        assert_eq!(memory.set(1, PAGE, &[], |_| true), Err(Errno(libc::EINVAL)));
    }
}
