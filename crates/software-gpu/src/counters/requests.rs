//! Events of the texture addresser (TA): memory requests of one compute unit, by class.
//!
//! Numbers: `counter_defs.yaml` of ROCm/rocm-systems.

use wavescope_pm4::Target;

use crate::walk::Counts;

/// Vector memory requests of one compute unit; each instruction of a wave is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    buffer: Classes,
    flat: Classes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Classes {
    read: u64,
    write: u64,
    atomic: u64,
}

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    All,
    Buffer,
    BufferRead,
    BufferWrite,
    BufferAtomic,
    Flat,
    FlatRead,
    FlatWrite,
    FlatAtomic,
}

impl Classes {
    const fn all(self) -> u64 {
        self.read + self.write + self.atomic
    }
}

impl Requests {
    /// Adds those of executed instructions.
    pub(crate) const fn add(&mut self, counts: &Counts) {
        let (flat, buffer) = (&mut self.flat, &mut self.buffer);
        flat.read += counts.flat_read;
        flat.write += counts.flat_write - counts.flat_atomic;
        flat.atomic += counts.flat_atomic;
        buffer.read += counts.vmem_read - counts.flat_read;
        buffer.write += counts.vmem_write - counts.flat_write - counts.buffer_atomic;
        buffer.atomic += counts.buffer_atomic;
    }

    pub(crate) const fn count(&self, request: Request) -> u64 {
        match request {
            Request::All => self.buffer.all() + self.flat.all(),
            Request::Buffer => self.buffer.all(),
            Request::BufferRead => self.buffer.read,
            Request::BufferWrite => self.buffer.write,
            Request::BufferAtomic => self.buffer.atomic,
            Request::Flat => self.flat.all(),
            Request::FlatRead => self.flat.read,
            Request::FlatWrite => self.flat.write,
            Request::FlatAtomic => self.flat.atomic,
        }
    }
}

/// What a TA event counts, if it is modelled.
pub(crate) fn request(target: Target, event: u32) -> Option<Request> {
    match target {
        Target::Gfx906 => None,
        Target::Gfx908 | Target::Gfx90a => request_gfx9([32, 44, 100], event),
        Target::Gfx942 | Target::Gfx950 => request_gfx9([29, 32, 51], event),
        Target::Gfx1030 => match event {
            101 => Some(Request::FlatRead),
            102 => Some(Request::FlatWrite),
            _ => None,
        },
        Target::Gfx1100 | Target::Gfx1200 | Target::Gfx1201 => match event {
            45 => Some(Request::BufferRead),
            46 => Some(Request::BufferWrite),
            _ => None,
        },
    }
}

/// gfx9: one event for all, and four each from these for buffer and flat.
fn request_gfx9([total, buffer, flat]: [u32; 3], event: u32) -> Option<Request> {
    let of = |kinds: [Request; 4], first: u32| kinds.get(event.checked_sub(first)? as usize).copied();
    let buffers = [Request::Buffer, Request::BufferRead, Request::BufferWrite, Request::BufferAtomic];
    let flats = [Request::Flat, Request::FlatRead, Request::FlatWrite, Request::FlatAtomic];
    let all = (event == total).then_some(Request::All);
    all.or_else(|| of(buffers, buffer)).or_else(|| of(flats, flat))
}
