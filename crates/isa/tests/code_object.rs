//! Code objects that lack tables, hold two kernels, or are damaged. Built here byte by byte after the ELF format and
//! LLVM's AMDGPU usage guide.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use wavescope_isa::{CodeObject, Error, Target};

/// Bytes of the file header.
const HEADER: usize = 64;
/// Where the parts lie: file offsets are virtual addresses.
const SYMBOLS: usize = 0x100;
const NAMES: usize = 0x200;
const HASH: usize = 0x300;
const DYNAMIC: usize = 0x340;
const NOTE: usize = 0x3c0;
const DESCRIPTORS: usize = 0x600;
const CODE: usize = 0x800;
const SECTIONS: usize = 0x900;
const END: usize = 0xc00;

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A symbol table entry: name, type, section, address, size.
fn symbol(name: u32, kind: u8, vaddr: usize, size: u64) -> Vec<u8> {
    let mut entry = name.to_le_bytes().to_vec();
    entry.extend([0x10 | kind, 0, 1, 0]);
    entry.extend(words(&[vaddr as u64, size]));
    entry
}

/// A MessagePack text of fewer than 32 bytes.
fn text(value: &str) -> Vec<u8> {
    [&[0xa0 | value.len() as u8], value.as_bytes()].concat()
}

/// A metadata note with these kernels: `.name`, `.symbol`.
fn note(kernels: &[(&str, &str)]) -> Vec<u8> {
    let mut map = vec![0x82];
    map.extend([text("amdhsa.version"), vec![0x92, 1, 2], text("amdhsa.kernels")].concat());
    map.push(0x90 | kernels.len() as u8);
    for (name, symbol) in kernels {
        map.push(0x83);
        let args = [text(".args"), vec![0x91, 0x81], text(".size"), vec![8]].concat();
        map.extend([args, text(".name"), text(name), text(".symbol"), text(symbol)].concat());
    }
    let mut note =
        [7_u32, map.len() as u32, 32].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    note.extend(b"AMDGPU\0\0");
    note.extend(map);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

const NAME_TABLE: &[u8] = b"\0first\0first.kd\0second\0odd_descriptor\0device\0";

/// Name offsets in [`NAME_TABLE`].
fn name(of: &str) -> u32 {
    let at = NAME_TABLE
        .windows(of.len() + 1)
        .position(|part| part.starts_with(of.as_bytes()) && part[of.len()] == 0);
    at.unwrap() as u32
}

/// An object for gfx942 with two kernels; one descriptor's symbol is not called after its kernel. Code: two
/// instructions of `first`, one of `second`, one outside all symbols.
fn object() -> Vec<u8> {
    let mut file = vec![0; END];
    put(&mut file, 0, b"\x7fELF\x02\x01\x01\x40\x04");
    put(&mut file, 16, &[3, 0, 224, 0, 1]);
    put(&mut file, 48, &0x54c_u32.to_le_bytes());
    // Program headers: one load segment of everything, executable; dynamic; note.
    put(&mut file, 32, &words(&[HEADER as u64]));
    put(&mut file, 54, &[56, 0, 3, 0, 64, 0]);
    let note = note(&[("first", "first.kd"), ("second<int>", "odd_descriptor")]);
    let segments = [(1_u64, 0, SECTIONS, 5_u64), (2, DYNAMIC, 0x60, 4), (4, NOTE, note.len(), 4)];
    for (number, (kind, at, size, flags)) in segments.into_iter().enumerate() {
        let (at, size) = (at as u64, size as u64);
        put(&mut file, HEADER + 56 * number, &words(&[flags << 32 | kind, at, at, at, size, size, 4]));
    }
    put(&mut file, NOTE, &note);
    // Symbols. `second` comes before `first.kd` in the table: order means nothing.
    let symbols = [
        vec![0; 24],
        symbol(name("second"), 2, CODE + 8, 4),
        symbol(name("odd_descriptor"), 1, DESCRIPTORS, 64),
        symbol(name("first"), 2, CODE, 8),
        symbol(name("first.kd"), 1, DESCRIPTORS + 64, 64),
    ];
    put(&mut file, SYMBOLS, &symbols.concat());
    put(&mut file, NAMES, NAME_TABLE);
    put(&mut file, HASH, &[1, 0, 0, 0, 5, 0, 0, 0]);
    let dynamic = [4, HASH, 5, NAMES, 6, SYMBOLS, 10, NAME_TABLE.len(), 0, 0].map(|value| value as u64);
    put(&mut file, DYNAMIC, &words(&dynamic));
    // Descriptors: the entry is relative to the descriptor. 12 VGPR blocks of 8, 3 SGPR blocks of 16.
    for (at, entry) in [(DESCRIPTORS, CODE + 8), (DESCRIPTORS + 64, CODE)] {
        put(&mut file, at, &512_u32.to_le_bytes());
        put(&mut file, at + 16, &((entry as i64) - (at as i64)).to_le_bytes());
        put(&mut file, at + 48, &(11_u32 | 2 << 7).to_le_bytes());
    }
    let code = [0xbf80_0000_u32, 0xbf81_0000, 0xbf81_0000, 0xbf8c_0000];
    put(&mut file, CODE, &code.map(u32::to_le_bytes).concat());
    // Section headers: null, .dynsym, .dynstr, .text, .note.
    put(&mut file, 40, &words(&[SECTIONS as u64]));
    put(&mut file, 60, &[5, 0]);
    let sections = [
        (0_u64, 0_u64, 0, 0, 0_u64),
        (11, 2, SYMBOLS, 120, 2),
        (3, 2, NAMES, NAME_TABLE.len(), 0),
        (1, 6, CODE, 16, 0),
        (7, 2, NOTE, note.len(), 0),
    ];
    for (number, (kind, flags, at, size, link)) in sections.into_iter().enumerate() {
        let (at, size) = (at as u64, size as u64);
        put(&mut file, SECTIONS + 64 * number, &words(&[kind << 32, flags, at, at, size, link, 4, 0]));
    }
    file
}

/// Without its section headers.
fn without_sections() -> Vec<u8> {
    let mut file = object();
    put(&mut file, 40, &[0; 8]);
    put(&mut file, 60, &[0; 2]);
    file.truncate(SECTIONS);
    file
}

/// Without its program headers.
fn without_segments() -> Vec<u8> {
    let mut file = object();
    put(&mut file, 32, &[0; 8]);
    put(&mut file, 56, &[0; 2]);
    put(&mut file, HEADER, &[0; 56 * 3]);
    file
}

#[test]
fn two_kernels_are_told_apart_by_their_descriptors() {
    let file = object();
    let object = CodeObject::parse(&file).unwrap();
    let found: Vec<_> = object
        .kernels()
        .iter()
        .map(|kernel| (kernel.name, kernel.symbol, kernel.entry_vaddr() as usize))
        .collect();
    assert_eq!(found, [("second<int>", "odd_descriptor", CODE + 8), ("first", "first.kd", CODE)]);
    assert_eq!(object.kernel_at(DESCRIPTORS as u64 + 64).unwrap().name, "first");
    assert!(object.kernel_at(DESCRIPTORS as u64 + 8).is_none());
}

#[test]
fn descriptor_tells_registers_and_lds() {
    let file = object();
    let object = CodeObject::parse(&file).unwrap();
    let descriptor = object.kernels()[0].descriptor;
    let target = object.target().unwrap();
    assert_eq!(target, Target::Gfx942);
    assert_eq!((descriptor.vgprs(target), descriptor.sgprs(target), descriptor.group_bytes()), (96, 48, 512));
    assert_eq!(descriptor.accumulation_offset(target), Some(4));
    assert!(!descriptor.is_wave32());
}

#[test]
fn tables_may_be_missing() {
    for (file, kernels) in [(without_sections(), 2), (without_segments(), 0)] {
        let object = CodeObject::parse(&file).unwrap();
        // Descriptors lie in no section of this file, so without segments they are not loaded.
        assert_eq!(object.kernels().len(), kernels);
        assert_eq!(
            object.symbol_at(CODE as u64 + 4).map(|(symbol, at)| (symbol.name, at)),
            Some(("first", 4))
        );
        assert_eq!(object.decode_at(Target::Gfx942, CODE as u64 + 4).unwrap().mnemonic(), "s_endpgm");
    }
}

#[test]
fn code_outside_symbols_is_still_code_of_the_object() {
    let file = object();
    let object = CodeObject::parse(&file).unwrap();
    let outside = CODE as u64 + 12;
    assert_eq!(object.symbol_at(outside), None);
    assert_eq!(object.decode_at(Target::Gfx942, outside).unwrap().mnemonic(), "s_waitcnt");
    assert_eq!(object.load_size(), SECTIONS as u64);
}

#[test]
fn addresses_outside_are_unmapped() {
    let file = object();
    let object = CodeObject::parse(&file).unwrap();
    for vaddr in [SECTIONS as u64, u64::MAX, u64::MAX - 3] {
        assert_eq!(object.decode_at(Target::Gfx942, vaddr), Err(Error::Unmapped { vaddr }));
    }
}

#[test]
fn tables_that_leave_the_file_are_named_with_their_offset() {
    let mut file = object();
    put(&mut file, 40, &words(&[0x10_0000]));
    let error = CodeObject::parse(&file).err().unwrap();
    assert_eq!(error.to_string(), "code object, offset 0x100000: 5 section headers leave the file");

    let other = CodeObject::parse(b"\x7fELF\x01").err().unwrap();
    assert_eq!(other.to_string(), "code object, offset 0x0: no room for an ELF header");
}

#[test]
fn a_damaged_note_leaves_the_kernels_that_symbols_tell() {
    let mut file = object();
    let list = NOTE + 20 + 1 + text("amdhsa.version").len() + 3 + text("amdhsa.kernels").len();
    assert_eq!(file[list], 0x92);
    file[list] = 0x9f; // fifteen kernels, of which two are there
    let object = CodeObject::parse(&file).unwrap();
    assert!(
        matches!(object.metadata_error(), Some(Error::CodeObject { offset, .. }) if *offset > NOTE as u64)
    );
    let names: Vec<_> = object.kernels().iter().map(|kernel| kernel.name).collect();
    assert_eq!(names, ["first"]);
}

#[test]
fn every_truncation_and_byte_flip_ends() {
    let file = object();
    for length in 0..file.len() {
        let _ = CodeObject::parse(&file[..length]);
    }
    for at in (0..file.len()).step_by(3) {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = file.clone();
            damaged[at] = value;
            let Ok(object) = CodeObject::parse(&damaged) else { continue };
            for kernel in object.kernels() {
                let _ = object.decode_at(Target::Gfx942, kernel.entry_vaddr());
                let _ = object.symbol_at(kernel.entry_vaddr());
            }
        }
    }
}
