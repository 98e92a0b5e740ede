//! Symbols by address.

use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use object::read::StringTable;

use super::elf::Elf;
use crate::error::Error;

/// A defined symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'data> {
    /// Name.
    pub name: &'data str,
    /// Virtual address.
    pub vaddr: u64,
    /// Size in bytes; 0 where the file does not tell.
    pub size: u64,
    /// Whether it is code.
    pub is_function: bool,
}

impl Symbol<'_> {
    const fn end(&self) -> u64 {
        self.vaddr.saturating_add(self.size)
    }
}

/// All symbols, sorted by address.
pub(super) struct Symbols<'data> {
    sorted: Vec<Symbol<'data>>,
    /// For each symbol the farthest end of it and all before it: tells where to stop looking for enclosing ones.
    reach: Vec<u64>,
}

impl<'data> Symbols<'data> {
    pub(super) fn read(elf: &Elf<'data>) -> Result<Self, Error> {
        let mut sorted = Vec::new();
        // One table of each kind: the ELF format allows no more, and a file that lists one table a thousand times
        // shall not cost a thousand times its size.
        for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            read_section(elf, kind, &mut sorted)?;
        }
        if sorted.is_empty() {
            read_dynamic(elf, &mut sorted)?;
        }
        sorted.sort_by(|a, b| (a.vaddr, b.size, a.name).cmp(&(b.vaddr, a.size, b.name)));
        sorted.dedup();
        let reach = sorted
            .iter()
            .scan(0, |farthest, symbol| {
                *farthest = symbol.end().max(*farthest);
                Some(*farthest)
            })
            .collect();
        Ok(Self { sorted, reach })
    }

    pub(super) fn all(&self) -> &[Symbol<'data>] {
        &self.sorted
    }

    /// The innermost function that covers `vaddr`, else any symbol that does. A symbol of unknown size reaches to the
    /// next one.
    pub(super) fn covering(&self, vaddr: u64) -> Option<Symbol<'data>> {
        let next = self.sorted.partition_point(|symbol| symbol.vaddr <= vaddr);
        let mut other = None;
        for (symbol, reach) in self.sorted[..next].iter().zip(&self.reach).rev() {
            let open_ended = symbol.size == 0 && symbol.vaddr == self.sorted[next - 1].vaddr;
            if vaddr < symbol.end() || open_ended {
                if symbol.is_function {
                    return Some(*symbol);
                }
                other = other.or(Some(*symbol));
            }
            if *reach <= vaddr && !open_ended {
                break;
            }
        }
        other
    }
}

/// Adds the symbols of the first section of this kind.
fn read_section<'data>(elf: &Elf<'data>, kind: u32, into: &mut Vec<Symbol<'data>>) -> Result<(), Error> {
    let Some(section) = elf.sections.iter().find(|section| section.sh_type.get(LE) == kind) else {
        return Ok(());
    };
    let count = section.sh_size.get(LE) as usize / size_of::<Sym64<LE>>();
    let symbols = elf.symbols(section.sh_offset.get(LE), count)?;
    let Some(names) = elf.sections.get(section.sh_link.get(LE) as usize) else {
        return Ok(());
    };
    let start = names.sh_offset.get(LE);
    let strings = StringTable::new(elf.data, start, start.saturating_add(names.sh_size.get(LE)));
    into.extend(symbols.iter().filter_map(|symbol| defined(symbol, strings)));
    Ok(())
}

/// Adds the symbols that the dynamic segment tells of: for files without section headers.
fn read_dynamic<'data>(elf: &Elf<'data>, into: &mut Vec<Symbol<'data>>) -> Result<(), Error> {
    let entries = elf.dynamic()?;
    let value = |tag: u32| {
        let found = entries.iter().find(|entry| entry.d_tag.get(LE) == u64::from(tag));
        found.map(|entry| entry.d_val.get(LE))
    };
    let offset = |tag: u32| value(tag).and_then(|vaddr| elf.offset_of(vaddr));
    let (Some(table), Some(names)) = (offset(elf::DT_SYMTAB), offset(elf::DT_STRTAB)) else {
        return Ok(());
    };
    let count = match offset(elf::DT_HASH) {
        // nbucket, nchain: one chain link per symbol.
        Some(hash) => {
            let head = elf.bytes(hash, 8, "hash table")?;
            u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize
        }
        // Linkers put the names right behind the symbols.
        None => names.saturating_sub(table) as usize / size_of::<Sym64<LE>>(),
    };
    let end = names.saturating_add(value(elf::DT_STRSZ).unwrap_or(u64::MAX));
    let strings = StringTable::new(elf.data, names, end.min(elf.data.len() as u64));
    into.extend(elf.symbols(table, count)?.iter().filter_map(|symbol| defined(symbol, strings)));
    Ok(())
}

/// A symbol that has an address and a readable name.
fn defined<'data>(symbol: &Sym64<LE>, strings: StringTable<'data>) -> Option<Symbol<'data>> {
    let section = symbol.st_shndx.get(LE);
    if section == elf::SHN_UNDEF || section == elf::SHN_ABS {
        return None;
    }
    let kind = symbol.st_info & 0xf;
    if kind == elf::STT_SECTION || kind == elf::STT_FILE {
        return None;
    }
    let name = strings.get(symbol.st_name.get(LE)).ok()?;
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    Some(Symbol {
        name,
        vaddr: symbol.st_value.get(LE),
        size: symbol.st_size.get(LE),
        is_function: kind == elf::STT_FUNC,
    })
}
