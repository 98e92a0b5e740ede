//! AMD GPU code objects: load segments, kernels, symbols.
//!
//! [`CodeObject`] reads an ELF file in place. It takes files without program headers (then the allocated sections are
//! what is loaded), without section headers (then the dynamic segment tells the symbols) and without metadata (then
//! symbols that end in `.kd` are the kernels). Addresses are the file's own; a loaded object's are these plus the load
//! address.

mod descriptor;
mod elf;
mod message_pack;
mod metadata;
mod symbols;

use std::collections::HashMap;

use object::LittleEndian as LE;

use crate::decode::decode;
use crate::error::Error;
use crate::instruction::Instruction;
use crate::target::Target;
use elf::Elf;
use symbols::Symbols;

pub use descriptor::KernelDescriptor;
pub use metadata::KernelMetadata;
pub use symbols::Symbol;

/// A run of loaded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'data> {
    /// Virtual address of the first byte.
    pub vaddr: u64,
    /// Size in memory; bytes beyond `bytes` are zero.
    pub memory_size: u64,
    /// What the file holds.
    pub bytes: &'data [u8],
    /// Whether it holds code.
    pub is_executable: bool,
}

impl<'data> Segment<'data> {
    /// The file's bytes from `vaddr` to the end of the segment.
    fn from(&self, vaddr: u64) -> Option<&'data [u8]> {
        let within = usize::try_from(vaddr.checked_sub(self.vaddr)?).ok()?;
        self.bytes.get(within..).filter(|bytes| !bytes.is_empty())
    }
}

/// A kernel, found through its descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<'data> {
    /// Name for people: the metadata's, else the descriptor symbol's without `.kd`.
    pub name: &'data str,
    /// Name of the descriptor's symbol.
    pub symbol: &'data str,
    /// Virtual address of the descriptor: what a dispatch packet's `kernel_object` is, less the load address.
    pub descriptor_vaddr: u64,
    /// The descriptor.
    pub descriptor: KernelDescriptor<'data>,
    /// What the compiler tells of it, if anything.
    pub metadata: Option<KernelMetadata<'data>>,
}

impl Kernel<'_> {
    /// Virtual address of the first instruction.
    pub fn entry_vaddr(&self) -> u64 {
        self.descriptor_vaddr.wrapping_add_signed(self.descriptor.entry_offset())
    }
}

/// A code object, read in place.
///
/// ```no_run
/// use wavescope_isa::CodeObject;
///
/// let file = std::fs::read("kernel.co")?;
/// let object = CodeObject::parse(&file)?;
/// for kernel in object.kernels() {
///     let first = object.decode_at(object.target()?, kernel.entry_vaddr())?;
///     println!("{}: starts with {}", kernel.name, first.mnemonic());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CodeObject<'data> {
    flags: u32,
    segments: Vec<Segment<'data>>,
    code: Vec<Segment<'data>>,
    symbols: Symbols<'data>,
    kernels: Vec<Kernel<'data>>,
    metadata_error: Option<Error>,
}

impl<'data> CodeObject<'data> {
    /// Reads the tables of an ELF file.
    ///
    /// # Errors
    ///
    /// [`Error::CodeObject`] with the byte offset of what cannot be read. An unreadable metadata note is none, see
    /// [`metadata_error`](Self::metadata_error).
    pub fn parse(data: &'data [u8]) -> Result<Self, Error> {
        let elf = Elf::parse(data)?;
        let sections = allocated_sections(&elf)?;
        let segments = match load_segments(&elf)? {
            loaded if loaded.is_empty() => sections.clone(),
            loaded => loaded,
        };
        let code = |from: &[Segment<'data>]| {
            from.iter().filter(|segment| segment.is_executable).copied().collect::<Vec<_>>()
        };
        let code = if sections.iter().any(|section| section.is_executable) {
            code(&sections)
        } else {
            code(&segments)
        };
        let symbols = Symbols::read(&elf)?;
        let (metadata, metadata_error) = match metadata::kernels(&elf) {
            Ok(kernels) => (kernels, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let kernels = find_kernels(&segments, &symbols, &metadata);
        Ok(Self { flags: elf.flags, segments, code, symbols, kernels, metadata_error })
    }

    /// The target that it was compiled for.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownMachine`] when the header flags name no supported target; generated files may leave them 0.
    pub fn target(&self) -> Result<Target, Error> {
        Target::from_elf_flags(self.flags)
    }

    /// `e_flags` of the ELF header.
    pub const fn flags(&self) -> u32 {
        self.flags
    }

    /// What is loaded, in the file's order.
    pub fn segments(&self) -> &[Segment<'data>] {
        &self.segments
    }

    /// Bytes that the loaded object spans, from address 0 to the end of the last segment.
    pub fn load_size(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.vaddr.saturating_add(segment.memory_size))
            .max()
            .unwrap_or(0)
    }

    /// The code: executable sections, or executable segments where there are no sections.
    pub fn code(&self) -> &[Segment<'data>] {
        &self.code
    }

    /// All kernels, sorted by descriptor address.
    pub fn kernels(&self) -> &[Kernel<'data>] {
        &self.kernels
    }

    /// The kernel whose descriptor is at `vaddr`.
    pub fn kernel_at(&self, vaddr: u64) -> Option<&Kernel<'data>> {
        let place = self.kernels.binary_search_by_key(&vaddr, |kernel| kernel.descriptor_vaddr).ok()?;
        self.kernels.get(place)
    }

    /// All defined symbols, sorted by address.
    pub fn symbols(&self) -> &[Symbol<'data>] {
        self.symbols.all()
    }

    /// The function that covers `vaddr`, and how far into it that is. None where no symbol does: code outside symbols
    /// is still code of this object, at the offset `vaddr`.
    pub fn symbol_at(&self, vaddr: u64) -> Option<(Symbol<'data>, u64)> {
        self.symbols.covering(vaddr).map(|symbol| (symbol, vaddr - symbol.vaddr))
    }

    /// Loaded bytes from `vaddr` to the end of its segment.
    pub fn bytes_at(&self, vaddr: u64) -> Option<&'data [u8]> {
        self.segments.iter().find_map(|segment| segment.from(vaddr))
    }

    /// The instruction at `vaddr`.
    ///
    /// # Errors
    ///
    /// [`Error::Unmapped`] when nothing is loaded there, else as [`decode`].
    pub fn decode_at(&self, target: Target, vaddr: u64) -> Result<Instruction, Error> {
        decode(target, self.bytes_at(vaddr).ok_or(Error::Unmapped { vaddr })?)
    }

    /// Why the metadata note could not be read. Its kernels are then known by their symbols only.
    pub const fn metadata_error(&self) -> Option<&Error> {
        self.metadata_error.as_ref()
    }
}

/// What the program headers load.
fn load_segments<'data>(elf: &Elf<'data>) -> Result<Vec<Segment<'data>>, Error> {
    use object::elf::{PF_X, PT_LOAD};
    let loaded = elf.segments.iter().filter(|segment| segment.p_type.get(LE) == PT_LOAD);
    loaded
        .map(|segment| {
            let (offset, size) = (segment.p_offset.get(LE), segment.p_filesz.get(LE));
            Ok(Segment {
                vaddr: segment.p_vaddr.get(LE),
                memory_size: segment.p_memsz.get(LE).max(size),
                bytes: elf.bytes(offset, size, "load segments")?,
                is_executable: segment.p_flags.get(LE) & PF_X != 0,
            })
        })
        .collect()
}

/// Sections that are part of the loaded object.
fn allocated_sections<'data>(elf: &Elf<'data>) -> Result<Vec<Segment<'data>>, Error> {
    use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS};
    let allocated =
        elf.sections.iter().filter(|section| section.sh_flags.get(LE) & u64::from(SHF_ALLOC) != 0);
    allocated
        .map(|section| {
            let (offset, size) = (section.sh_offset.get(LE), section.sh_size.get(LE));
            let in_file = if section.sh_type.get(LE) == SHT_NOBITS { 0 } else { size };
            Ok(Segment {
                vaddr: section.sh_addr.get(LE),
                memory_size: size,
                bytes: elf.bytes(offset, in_file, "sections")?,
                is_executable: section.sh_flags.get(LE) & u64::from(SHF_EXECINSTR) != 0,
            })
        })
        .collect()
}

/// Joins descriptor symbols with metadata.
fn find_kernels<'data>(
    segments: &[Segment<'data>],
    symbols: &Symbols<'data>,
    metadata: &[KernelMetadata<'data>],
) -> Vec<Kernel<'data>> {
    let told: HashMap<&str, &KernelMetadata<'data>> =
        metadata.iter().map(|kernel| (kernel.symbol, kernel)).collect();
    let mut kernels: Vec<Kernel<'data>> = symbols
        .all()
        .iter()
        .filter_map(|symbol| {
            let metadata = told.get(symbol.name).map(|metadata| **metadata);
            let plain = symbol.name.strip_suffix(".kd");
            let name = metadata.map(|metadata| metadata.name).filter(|name| !name.is_empty());
            let name = if metadata.is_some() { name.or(plain).unwrap_or(symbol.name) } else { plain? };
            let bytes = segments.iter().find_map(|segment| segment.from(symbol.vaddr))?;
            let descriptor = KernelDescriptor::new(bytes)?;
            Some(Kernel { name, symbol: symbol.name, descriptor_vaddr: symbol.vaddr, descriptor, metadata })
        })
        .collect();
    // A metadata name wins over a second symbol at the same address.
    kernels.sort_by_key(|kernel| (kernel.descriptor_vaddr, kernel.metadata.is_none()));
    kernels.dedup_by_key(|kernel| kernel.descriptor_vaddr);
    kernels
}
