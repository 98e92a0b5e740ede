//! Code objects that ran on real chips, against the disassembly captured with them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{bare, captures, class_of};
use wavescope_isa::{CodeObject, Error, InstructionClass, Instructions, Target};

/// One line of an `.isa.tsv`: address, size, text.
struct Line {
    vaddr: u64,
    size: usize,
    text: String,
}

fn lines(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let mut columns = line.splitn(3, '\t');
            let mut next = || columns.next().unwrap();
            let (vaddr, size) = (next().parse().unwrap(), next().parse().unwrap());
            Line { vaddr, size, text: next().to_owned() }
        })
        .collect()
}

/// All listings: path, code object beside it if there is one, target.
fn listings() -> Vec<(std::path::PathBuf, Option<Vec<u8>>, Target)> {
    let Some(folder) = captures() else { return Vec::new() };
    let mut found = Vec::new();
    for chip in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for set in fs::read_dir(&chip).unwrap().map(|entry| entry.unwrap().path()) {
            let meta = fs::read_to_string(set.join("meta.json")).unwrap();
            for file in fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().path()) {
                if file.to_string_lossy().ends_with(".isa.tsv") {
                    let object = fs::read(file.with_extension("").with_extension("co")).ok();
                    found.push((file, object, target(&meta)));
                }
            }
        }
    }
    assert!(found.len() > 40, "only {} listings", found.len());
    found
}

/// The chip that a set's `meta.json` names; for synthetic sets the first of its generation.
fn target(meta: &str) -> Target {
    let value = |key: &str| {
        let (_, rest) = meta.split_once(&format!("\"{key}\": \""))?;
        rest.split('"').next()
    };
    if let Some(name) = value("target") {
        return name.parse().unwrap();
    }
    match value("generation").unwrap() {
        "gfx9" => Target::Gfx90a,
        "gfx10" => Target::Gfx1030,
        "gfx11" => Target::Gfx1100,
        "gfx12" => Target::Gfx1200,
        "gfx1250" => Target::Gfx1250,
        other => panic!("unknown generation {other}"),
    }
}

#[test]
fn every_instruction_has_the_captured_length_name_and_class() {
    let mut compared = 0;
    for (path, object, target) in listings() {
        let Some(object) = object else { continue };
        let object = CodeObject::parse(&object).unwrap();
        for line in lines(&path) {
            let found = object.decode_at(target, line.vaddr).unwrap();
            let place = format!("{} at {:#x}: {}", path.display(), line.vaddr, line.text);
            assert_eq!(found.size(), line.size, "{place}");
            assert_eq!(found.mnemonic(), bare(&line.text), "{place}");
            assert_eq!(found.class(), class_of(target.gfxip(), &line.text), "{place}");
            compared += 1;
        }
    }
    println!("{compared} instructions compared");
}

#[test]
fn linear_walk_of_the_code_meets_exactly_the_captured_addresses() {
    for (path, object, target) in listings() {
        let Some(object) = object else { continue };
        let object = CodeObject::parse(&object).unwrap();
        let [code] = object.code() else {
            panic!("{}: {} code sections", path.display(), object.code().len())
        };
        let walked: Vec<u64> = Instructions::new(target, code.bytes)
            .map(|(offset, found)| {
                found.unwrap();
                code.vaddr + offset as u64
            })
            .collect();
        let captured: Vec<u64> = lines(&path).iter().map(|line| line.vaddr).collect();
        assert_eq!(walked, captured, "{}", path.display());
    }
}

#[test]
fn branch_targets_are_those_of_the_text() {
    let mut branches = 0;
    for (path, object, target) in listings() {
        let Some(object) = object else { continue };
        let object = CodeObject::parse(&object).unwrap();
        for line in lines(&path).iter().filter(|line| line.text.contains("branch")) {
            let distance: u16 = line.text.rsplit(' ').next().unwrap().parse().unwrap();
            let expected = line.vaddr.wrapping_add(4).wrapping_add_signed(i64::from(distance as i16) * 4);
            let found = object.decode_at(target, line.vaddr).unwrap();
            assert_eq!(found.branch_target(line.vaddr), Some(expected), "{}: {}", path.display(), line.text);
            branches += 1;
        }
    }
    println!("{branches} branches compared");
}

#[test]
fn class_of_every_captured_text_is_its_mnemonic_familys() {
    for (path, _, target) in listings() {
        for line in lines(&path) {
            let found = InstructionClass::of_text(target.gfxip(), &line.text);
            assert_eq!(found, class_of(target.gfxip(), &line.text), "{}: {}", path.display(), line.text);
        }
    }
}

#[test]
fn kernels_and_targets_are_those_of_the_capture() {
    for (path, object, target) in listings() {
        let Some(bytes) = object else { continue };
        let object = CodeObject::parse(&bytes).unwrap();
        let meta = fs::read_to_string(path.with_file_name("meta.json")).unwrap();
        // Generated objects have only sections, and no flags, symbols or metadata.
        if object.symbols().is_empty() {
            assert_eq!(object.target(), Err(Error::UnknownMachine { machine: 0 }));
            assert!(object.kernels().is_empty());
            continue;
        }
        assert_eq!(object.target(), Ok(target), "{}", path.display());
        let [kernel] = object.kernels() else { panic!("{} kernels", object.kernels().len()) };
        assert!(meta.contains(&format!("\"name\": \"{}\"", kernel.name)), "{}", kernel.name);
        assert_eq!(kernel.entry_vaddr(), lines(&path)[0].vaddr);
        let symbol = object.symbol_at(kernel.entry_vaddr()).unwrap();
        assert_eq!((symbol.0.name, symbol.1), (kernel.name, 0));
        // Padding behind the kernel belongs to no symbol, and is code all the same.
        let last = lines(&path).last().unwrap().vaddr;
        assert_eq!(object.symbol_at(last), None);
        assert!(object.decode_at(target, last).is_ok());
        assert_eq!(object.kernel_at(kernel.descriptor_vaddr).map(|found| found.name), Some(kernel.name));
        let told = kernel.metadata.unwrap();
        let wave32 = told.wavefront_size == 32;
        assert_eq!(kernel.descriptor.is_wave32(), wave32);
        assert_eq!(u64::from(kernel.descriptor.kernarg_bytes()), told.kernarg_bytes);
        let vgprs = u64::from(kernel.descriptor.vgprs(target));
        assert!(
            vgprs >= told.vgpr_count && vgprs < told.vgpr_count.max(1) + 16,
            "{vgprs} for {}",
            told.vgpr_count
        );
    }
}
