//! The ELF structures of a code object, read leniently.
//!
//! Generated code objects can lack program headers, section headers or half of the file header (machine, byte order,
//! entry sizes), and still run. So the headers are read through `object`'s plain structures without its checks of the
//! file header; what lies outside the file is an error all the same.

use object::elf::{self, Dyn64, FileHeader64, ProgramHeader64, SectionHeader64, Sym64};
use object::{LittleEndian as LE, ReadRef};

use crate::error::Error;

/// Header tables of an ELF file.
pub(super) struct Elf<'data> {
    pub(super) data: &'data [u8],
    pub(super) flags: u32,
    pub(super) segments: &'data [ProgramHeader64<LE>],
    pub(super) sections: &'data [SectionHeader64<LE>],
}

/// An error at a byte offset of the file.
pub(super) fn unreadable(offset: u64, what: &str) -> Error {
    Error::CodeObject { offset, what: what.to_owned() }
}

impl<'data> Elf<'data> {
    pub(super) fn parse(data: &'data [u8]) -> Result<Self, Error> {
        let header: &FileHeader64<LE> =
            data.read_at(0).map_err(|()| unreadable(0, "no room for an ELF header"))?;
        if header.e_ident.magic != elf::ELFMAG || header.e_ident.class != elf::ELFCLASS64 {
            return Err(unreadable(0, "not a 64-bit ELF file"));
        }
        let machine = header.e_machine.get(LE);
        if machine != elf::EM_AMDGPU && machine != elf::EM_NONE {
            return Err(unreadable(18, &format!("made for machine {machine}, not for AMD GPUs (224)")));
        }
        Ok(Self {
            data,
            flags: header.e_flags.get(LE),
            segments: table(data, header.e_phoff.get(LE), header.e_phnum.get(LE), "program headers")?,
            sections: table(data, header.e_shoff.get(LE), header.e_shnum.get(LE), "section headers")?,
        })
    }

    /// Bytes of the file, by offset and size.
    pub(super) fn bytes(&self, offset: u64, size: u64, what: &str) -> Result<&'data [u8], Error> {
        self.data
            .read_bytes_at(offset, size)
            .map_err(|()| unreadable(offset, &format!("{what} leave the file")))
    }

    /// Entries of a table in a section.
    pub(super) fn symbols(&self, offset: u64, count: usize) -> Result<&'data [Sym64<LE>], Error> {
        self.data.read_slice_at(offset, count).map_err(|()| unreadable(offset, "symbols leave the file"))
    }

    /// Entries of the dynamic segment. Empty if there is none.
    pub(super) fn dynamic(&self) -> Result<&'data [Dyn64<LE>], Error> {
        let found = self.segments.iter().find(|segment| segment.p_type.get(LE) == elf::PT_DYNAMIC);
        let Some(segment) = found else { return Ok(&[]) };
        let (offset, size) = (segment.p_offset.get(LE), segment.p_filesz.get(LE));
        let count = size as usize / size_of::<Dyn64<LE>>();
        self.data
            .read_slice_at(offset, count)
            .map_err(|()| unreadable(offset, "dynamic entries leave the file"))
    }

    /// File offset of a virtual address, through the load segments.
    pub(super) fn offset_of(&self, vaddr: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD).find_map(|segment| {
            let within = vaddr.checked_sub(segment.p_vaddr.get(LE))?;
            let inside = within < segment.p_filesz.get(LE);
            inside.then(|| segment.p_offset.get(LE).wrapping_add(within))
        })
    }
}

/// A header table. The entry size in the file header is not looked at: generated files leave it 0.
fn table<'data, T: object::Pod>(
    data: &'data [u8],
    offset: u64,
    count: u16,
    what: &str,
) -> Result<&'data [T], Error> {
    if offset == 0 || count == 0 {
        return Ok(&[]);
    }
    data.read_slice_at(offset, usize::from(count))
        .map_err(|()| unreadable(offset, &format!("{count} {what} leave the file")))
}
