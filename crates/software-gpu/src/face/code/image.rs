//! A code object's ELF file as the loader needs it: segments, relocations, symbols, target.

use object::elf::{self, FileHeader64};
use object::endian::LittleEndian;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Object, ObjectSymbol, ObjectSymbolTable, SymbolKind};
use wavescope_isa::Target;

use crate::face::error::{Failure, Outcome};

/// Relocation types that a finished code object may still have (LLVM AMDGPU usage guide, "Relocation Records").
mod relocation {
    pub(super) const ABS64: u32 = 3;
    pub(super) const RELATIVE64: u32 = 13;
}

const INVALID: Failure = Failure(hsa_sys::HSA_STATUS_ERROR_INVALID_CODE_OBJECT);

/// No code object is larger: an address space for one that claims more would be a mistake or an attack.
const LARGEST: u64 = 1 << 32;

/// Kernel descriptors are 64 bytes (LLVM AMDGPU usage guide, "Kernel Descriptor").
const DESCRIPTOR_BYTES: u64 = 64;
const DESCRIPTOR_SUFFIX: &str = ".kd";

/// A part of the file that is loaded.
#[derive(Debug)]
struct Segment<'a> {
    address: u64,
    bytes: &'a [u8],
    memory_bytes: u64,
}

/// A 64-bit word to fill in: the load address plus `offset`.
#[derive(Clone, Copy, Debug)]
struct Fixup {
    address: u64,
    offset: u64,
}

/// A symbol that applications may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImageSymbol {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The kernel descriptor, if it is a kernel.
    pub(super) descriptor: Option<[u8; DESCRIPTOR_BYTES as usize]>,
    /// Whether it lies in memory that code cannot write.
    pub(super) is_const: bool,
}

/// A code object, parsed.
#[derive(Debug)]
pub(super) struct Image<'a> {
    pub(super) target: Target,
    segments: Vec<Segment<'a>>,
    fixups: Vec<Fixup>,
    pub(super) symbols: Vec<ImageSymbol>,
    /// Address of the first loaded byte, as the file counts.
    pub(super) first: u64,
    /// Bytes from there to the last one.
    pub(super) bytes: u64,
}

impl<'a> Image<'a> {
    /// Parses a code object.
    pub(super) fn parse(file: &'a [u8]) -> Outcome<Self> {
        let parsed = ElfFile64::<LittleEndian>::parse(file).map_err(invalid)?;
        let header: &FileHeader64<LittleEndian> = parsed.elf_header();
        if header.e_machine.get(LittleEndian) != elf::EM_AMDGPU {
            return Err(INVALID);
        }
        let target = Target::from_elf_flags(header.e_flags.get(LittleEndian)).map_err(invalid)?;
        let segments = segments(&parsed, file)?;
        let first = segments.iter().map(|segment| segment.address).min().ok_or(INVALID)?;
        let end = segments.iter().filter_map(Segment::end).max().ok_or(INVALID)?;
        let bytes = end - first;
        if bytes == 0 || bytes > LARGEST || segments.iter().any(|segment| segment.end().is_none()) {
            return Err(INVALID);
        }
        let mut image = Self { target, segments, fixups: Vec::new(), symbols: Vec::new(), first, bytes };
        image.fixups = fixups(&parsed, file)?;
        image.symbols = image.symbols_of(&parsed);
        Ok(image)
    }

    /// The image as it lies in memory when its first byte is at `load_address`.
    pub(super) fn relocated(&self, load_address: u64) -> Outcome<Vec<u8>> {
        let mut memory = vec![0; self.bytes as usize];
        for segment in &self.segments {
            let start = (segment.address - self.first) as usize;
            memory[start..start + segment.bytes.len()].copy_from_slice(segment.bytes);
        }
        let delta = load_address.wrapping_sub(self.first);
        for fixup in &self.fixups {
            let start = fixup.address.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
            let word = start.and_then(|start| memory.get_mut(start..)?.first_chunk_mut::<8>());
            *word.ok_or(INVALID)? = delta.wrapping_add(fixup.offset).to_le_bytes();
        }
        Ok(memory)
    }

    fn symbols_of(&self, parsed: &ElfFile64<'a, LittleEndian>) -> Vec<ImageSymbol> {
        // ROCr looks into `.symtab` only: kernels of a stripped file have no names (seen with 7.2.4).
        if parsed.symbol_table().is_none() {
            tracing::warn!("a code object without .symtab has no symbols for the runtime");
        }
        let symbols = parsed.symbol_table().into_iter().flat_map(|table| table.symbols());
        symbols
            .filter(|symbol| {
                symbol.is_definition() && symbol.is_global() && symbol.kind() == SymbolKind::Data
            })
            .filter_map(|symbol| {
                let name = symbol.name().ok()?.to_owned();
                let descriptor = name.ends_with(DESCRIPTOR_SUFFIX).then(|| self.descriptor(symbol.address()));
                Some(ImageSymbol {
                    name,
                    address: symbol.address(),
                    bytes: symbol.size(),
                    descriptor: descriptor.flatten(),
                    is_const: self.is_const(symbol.address()),
                })
            })
            .collect()
    }

    fn descriptor(&self, address: u64) -> Option<[u8; DESCRIPTOR_BYTES as usize]> {
        let (segment, start) = self.segment_at(address)?;
        segment.bytes.get(start..)?.first_chunk().copied()
    }

    fn is_const(&self, address: u64) -> bool {
        // The linker puts read-only data first, writable data last.
        self.segments.last().is_some_and(|last| address < last.address)
    }

    fn segment_at(&self, address: u64) -> Option<(&Segment<'a>, usize)> {
        self.segments.iter().find_map(|segment| {
            let start = address.checked_sub(segment.address).filter(|&start| start < segment.memory_bytes)?;
            Some((segment, start as usize))
        })
    }
}

impl Segment<'_> {
    fn end(&self) -> Option<u64> {
        self.address.checked_add(self.memory_bytes)
    }
}

fn segments<'a>(parsed: &ElfFile64<'a, LittleEndian>, file: &'a [u8]) -> Outcome<Vec<Segment<'a>>> {
    let loaded =
        parsed.elf_program_headers().iter().filter(|header| header.p_type(LittleEndian) == elf::PT_LOAD);
    loaded
        .map(|header| {
            let bytes = header.data(LittleEndian, file).map_err(|()| INVALID)?;
            let memory_bytes = header.p_memsz(LittleEndian);
            if (bytes.len() as u64) > memory_bytes || memory_bytes > LARGEST {
                return Err(INVALID);
            }
            Ok(Segment { address: header.p_vaddr(LittleEndian), bytes, memory_bytes })
        })
        .collect()
}

/// The words that depend on the load address. Everything else was resolved by the linker.
fn fixups(parsed: &ElfFile64<'_, LittleEndian>, _file: &[u8]) -> Outcome<Vec<Fixup>> {
    let Some(relocations) = parsed.dynamic_relocations() else { return Ok(Vec::new()) };
    let symbols = parsed.dynamic_symbol_table();
    relocations
        .map(|(address, relocation)| {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else { return Err(INVALID) };
            let addend = relocation.addend().cast_unsigned();
            let offset = match (r_type, relocation.target()) {
                (relocation::RELATIVE64, _) => addend,
                (relocation::ABS64, object::RelocationTarget::Symbol(index)) => {
                    let table = symbols.as_ref().ok_or(INVALID)?;
                    let symbol = table.symbol_by_index(index).map_err(invalid)?;
                    if !symbol.is_definition() {
                        return Err(Failure(hsa_sys::HSA_STATUS_ERROR_VARIABLE_UNDEFINED));
                    }
                    symbol.address().wrapping_add(addend)
                }
                (other, _) => {
                    tracing::error!(r_type = other, address, "relocation type is not supported");
                    return Err(INVALID);
                }
            };
            Ok(Fixup { address, offset })
        })
        .collect()
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    tracing::warn!(%error, "code object cannot be read");
    INVALID
}
