//! The tables hold together: every prefix leads somewhere definite, every row is reached.

use super::*;
use crate::class::InstructionClass;

#[test]
fn rows_are_sorted_and_each_opcode_is_claimed_once() {
    for (encoding, rows) in SECTIONS {
        assert!(rows.is_sorted_by_key(|row| row.opcode), "{encoding:?}");
        for pair in rows.windows(2) {
            let [first, second] = pair else { continue };
            let twice = first.opcode == second.opcode && first.generations & second.generations != 0;
            assert!(!twice, "{encoding:?} {:#x}: {} and {}", first.opcode, first.name, second.name);
        }
    }
}

#[test]
fn longest_prefix_decides_and_formats_of_one_length_never_overlap() {
    for generation in Generation::ALL {
        for bits in 0..512u32 {
            let word = bits << 23;
            let Some(prefix) = table(generation).prefix(word) else { continue };
            let length = prefix.format.prefix_length;
            let same = (0..512u32).filter(|other| other >> (9 - length) == bits >> (9 - length));
            let others = same.filter_map(|other| table(generation).prefix(other << 23));
            let clash = others
                .filter(|other| other.format.prefix_length == length)
                .any(|other| !std::ptr::eq(other.format, prefix.format));
            assert!(!clash, "{generation:?} {bits:09b}");
        }
    }
}

#[test]
fn every_row_of_a_generation_is_found_under_its_number() {
    let formats = [formats::GFX9, formats::GFX10, formats::GFX11, formats::GFX12, formats::GFX1250];
    let formats_of = |generation: Generation| match generation {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => formats[0],
        Generation::Gfx10 | Generation::Gfx10_3 => formats[1],
        Generation::Gfx11 | Generation::Gfx11_5 => formats[2],
        Generation::Gfx12 => formats[3],
        Generation::Gfx1250 => formats[4],
    };
    for generation in Generation::ALL {
        for (encoding, rows) in SECTIONS.iter().filter(|(encoding, _)| *encoding != Encoding::Vop3px) {
            let own = rows.iter().filter(|row| row.is_in(generation));
            for row in own {
                let format = formats_of(generation).into_iter().flatten().find_map(|format| {
                    let at = format.encodings.iter().find(|(other, _)| other == encoding)?;
                    Some((format, at.1))
                });
                let (format, offset) = format.unwrap_or_else(|| panic!("{generation:?} lacks {encoding:?}"));
                let number = usize::from(row.opcode + offset);
                assert!(number < format.opcodes(), "{generation:?} {encoding:?} {:#x}", row.opcode);
                let word = u32::from(format.prefix) << (32 - format.prefix_length);
                let prefix = table(generation).prefix(word).unwrap();
                let opcode = table(generation).opcodes[usize::from(prefix.base) + number];
                assert_eq!(
                    (opcode.text(), opcode.encoding),
                    (row.name, *encoding),
                    "{generation:?} {number:#x}"
                );
            }
        }
    }
}

#[test]
fn class_by_name_is_class_by_text() {
    for name in &NAMES[Encoding::COUNT..] {
        for gfxip in 9..=12 {
            let by_name = InstructionClass::of_name(name).of_name_on(gfxip, name);
            assert_eq!(by_name, InstructionClass::of_text(gfxip, &format!("{name} ")), "{name} on {gfxip}");
        }
    }
}
