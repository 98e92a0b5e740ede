//! The metadata note: what the compiler tells about kernels.
//!
//! Contents: LLVM's AMDGPU usage guide, "Code Object V3 Metadata".

use object::LittleEndian as LE;
use object::elf;

use super::elf::{Elf, unreadable};
use super::message_pack::{MessagePack, Value};
use crate::error::Error;

/// What the metadata note says of one kernel. Numbers are 0 and texts empty where it says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelMetadata<'data> {
    /// Source name (`.name`).
    pub name: &'data str,
    /// Name of the descriptor's symbol (`.symbol`), not always the name with `.kd` behind it.
    pub symbol: &'data str,
    /// Bytes of kernel arguments.
    pub kernarg_bytes: u64,
    /// Bytes of LDS.
    pub group_bytes: u64,
    /// Bytes of scratch per lane.
    pub private_bytes: u64,
    /// Lanes in a wave.
    pub wavefront_size: u64,
    /// Vector registers, accumulation registers included where they share the file.
    pub vgpr_count: u64,
    /// Accumulation registers.
    pub agpr_count: u64,
    /// Scalar registers.
    pub sgpr_count: u64,
    /// Largest work-group, in work-items.
    pub max_flat_workgroup_size: u64,
}

/// Note owner and type of the metadata.
const OWNER: &[u8] = b"AMDGPU";
const TYPE: u32 = 32;

/// Note segments or sections looked at: real files have one or two.
const MAX_NOTE_BLOCKS: usize = 8;

/// Kernels of the metadata note; empty if there is no note.
pub(super) fn kernels<'data>(elf: &Elf<'data>) -> Result<Vec<KernelMetadata<'data>>, Error> {
    let Some((offset, note)) = find_note(elf) else { return Ok(Vec::new()) };
    let mut reader = MessagePack::new(note);
    read_kernels(&mut reader).ok_or_else(|| {
        let at = offset + (note.len() - reader.remaining()) as u64;
        unreadable(at, "metadata note is cut off or malformed")
    })
}

/// File offset and contents of the metadata note.
fn find_note<'data>(elf: &Elf<'data>) -> Option<(u64, &'data [u8])> {
    let segments = elf.segments.iter().filter(|segment| segment.p_type.get(LE) == elf::PT_NOTE);
    let segments = segments.map(|segment| (segment.p_offset.get(LE), segment.p_filesz.get(LE)));
    let sections = elf.sections.iter().filter(|section| section.sh_type.get(LE) == elf::SHT_NOTE);
    let sections = sections.map(|section| (section.sh_offset.get(LE), section.sh_size.get(LE)));
    segments
        .chain(sections)
        .take(MAX_NOTE_BLOCKS)
        .filter_map(|(offset, size)| Some((offset, elf.bytes(offset, size, "notes").ok()?)))
        .find_map(|(offset, block)| note_in(block).map(|(at, note)| (offset + at as u64, note)))
}

/// Offset and contents of the metadata note in a block of notes.
fn note_in(block: &[u8]) -> Option<(usize, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(*block.get(at..)?.first_chunk::<4>()?));
    let padded = |length: u32| (length as usize).checked_next_multiple_of(4);
    let mut at = 0;
    loop {
        let (name_size, size, kind) = (word(at)?, word(at + 4)?, word(at + 8)?);
        let name = at + 12;
        let contents = name.checked_add(padded(name_size)?)?;
        if kind == TYPE && block.get(name..)?.starts_with(OWNER) {
            return Some((contents, block.get(contents..)?.get(..size as usize)?));
        }
        at = contents.checked_add(padded(size)?)?;
    }
}

/// Walks the top map to the list of kernels.
fn read_kernels<'data>(reader: &mut MessagePack<'data>) -> Option<Vec<KernelMetadata<'data>>> {
    let Value::Map(pairs) = reader.next()? else { return None };
    let mut kernels = Vec::new();
    for _ in 0..pairs {
        let key = reader.next()?;
        reader.skip_elements(key)?;
        match (key, reader.next()?) {
            (Value::String("amdhsa.kernels"), Value::Array(count)) => {
                for _ in 0..count {
                    // One without a symbol cannot be found in the file.
                    kernels.extend(Some(read_kernel(reader)?).filter(|kernel| !kernel.symbol.is_empty()));
                }
            }
            (_, value) => reader.skip_elements(value)?,
        }
    }
    Some(kernels)
}

fn read_kernel<'data>(reader: &mut MessagePack<'data>) -> Option<KernelMetadata<'data>> {
    let Value::Map(pairs) = reader.next()? else { return None };
    let mut kernel = KernelMetadata::default();
    for _ in 0..pairs {
        let key = reader.next()?;
        reader.skip_elements(key)?;
        let value = reader.next()?;
        reader.skip_elements(value)?;
        if let Value::String(key) = key {
            kernel.set(key, value);
        }
    }
    Some(kernel)
}

impl<'data> KernelMetadata<'data> {
    fn set(&mut self, key: &str, value: Value<'data>) {
        match (key, value) {
            (".name", Value::String(name)) => self.name = name,
            (".symbol", Value::String(symbol)) => self.symbol = symbol,
            (".kernarg_segment_size", Value::Unsigned(bytes)) => self.kernarg_bytes = bytes,
            (".group_segment_fixed_size", Value::Unsigned(bytes)) => self.group_bytes = bytes,
            (".private_segment_fixed_size", Value::Unsigned(bytes)) => self.private_bytes = bytes,
            (".wavefront_size", Value::Unsigned(lanes)) => self.wavefront_size = lanes,
            (".vgpr_count", Value::Unsigned(count)) => self.vgpr_count = count,
            (".agpr_count", Value::Unsigned(count)) => self.agpr_count = count,
            (".sgpr_count", Value::Unsigned(count)) => self.sgpr_count = count,
            (".max_flat_workgroup_size", Value::Unsigned(size)) => self.max_flat_workgroup_size = size,
            _ => {}
        }
    }
}
