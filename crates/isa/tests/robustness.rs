//! Any bytes: no panic, always onward, never more than the bytes.

mod common;

use proptest::prelude::*;
use wavescope_isa::{CodeObject, Error, InstructionClass, Instructions, Target, decode, harness};

/// Any supported target.
fn target() -> impl Strategy<Value = Target> {
    proptest::sample::select(Target::ALL.to_vec())
}

/// Words that begin like instructions more often than chance.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![any::<u32>(), any::<u32>().prop_map(|word| word | 0xc000_0000), Just(0xbf80_0000)];
    proptest::collection::vec(word, 0..64)
        .prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// No files of failures beside the tests: a failing case belongs into a test of its own.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_instruction_is_4_to_20_bytes_and_fits(target in target(), bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        match decode(target, &bytes) {
            Ok(found) => {
                prop_assert!((4..=20).contains(&found.size()) && found.size() % 4 == 0 && found.size() <= bytes.len());
                prop_assert!(!found.mnemonic().is_empty());
            }
            Err(Error::Truncated { needed, available }) => {
                prop_assert!(needed > available && available == bytes.len());
            }
            Err(Error::UnknownEncoding { word, .. }) => prop_assert_eq!(&word.to_le_bytes(), &bytes[..4]),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn decoding_reads_nothing_behind_the_instruction_but_a_paired_one(target in target(), bytes in code(), tail in code()) {
        let Ok(found) = decode(target, &bytes) else { return Ok(()) };
        let mut longer = bytes[..found.size()].to_vec();
        longer.extend(tail);
        let again = decode(target, &longer).unwrap();
        // Only a scale-loading instruction becomes another by what follows it.
        if !found.mnemonic().contains("ld_scale") {
            prop_assert_eq!(again, found);
        }
    }

    #[test]
    fn a_linear_walk_goes_on_and_ends(target in target(), bytes in code()) {
        let mut next = 0;
        for (offset, found) in Instructions::new(target, &bytes) {
            prop_assert_eq!(offset, next);
            next += match found {
                Ok(instruction) => instruction.size(),
                Err(Error::Truncated { .. }) => bytes.len() - offset,
                Err(_) => 4,
            };
        }
        prop_assert_eq!(next, bytes.len());
    }

    #[test]
    fn branch_targets_wrap(target in target(), distance in any::<i16>(), address in any::<u64>()) {
        let opcode = if target.gfxip() >= 11 { 0xbfa0 } else { 0xbf82 };
        let word = opcode << 16 | u32::from(distance as u16);
        let branch = decode(target, &word.to_le_bytes()).unwrap();
        prop_assert_eq!(branch.mnemonic(), "s_branch");
        let expected = i128::from(address) + 4 + 4 * i128::from(distance);
        prop_assert_eq!(branch.branch_target(address), Some(expected.rem_euclid(1 << 64) as u64));
    }

    #[test]
    fn any_text_has_a_class(gfxip in any::<u8>(), text in ".{0,60}") {
        let _: InstructionClass = InstructionClass::of_text(gfxip, &text);
    }

    #[test]
    fn any_bytes_are_a_code_object_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..2000), at in any::<u64>()) {
        let mut elf = bytes;
        if elf.len() > 8 {
            elf[..5].copy_from_slice(b"\x7fELF\x02");
        }
        if let Ok(object) = CodeObject::parse(&elf) {
            let _ = object.decode_at(Target::Gfx942, at);
            prop_assert!(object.symbol_at(at).is_none_or(|(symbol, offset)| symbol.vaddr.checked_add(offset) == Some(at)));
        }
    }

    #[test]
    fn the_fuzz_harness_holds_on_random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        harness::check(&bytes);
    }
}

/// The harness on damaged copies of real code objects: bytes overwritten, cut, doubled.
#[test]
fn the_fuzz_harness_holds_on_damaged_captures() {
    let Some(folder) = common::captures() else { return };
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for name in ["gfx1100/gemm_run_0/k0.co", "gfx1200/sync_run_1/k0.co", "gfx950/plus_run_0/k0.co"] {
        let file = std::fs::read(folder.join(name)).unwrap();
        for _ in 0..150 {
            let mut damaged = file.clone();
            for _ in 0..1 + random() % 6 {
                // Tables stand at the front; most damage goes there.
                let within = if random() % 2 == 0 { damaged.len() } else { 0x800.min(damaged.len()) };
                let at = random() % within;
                damaged[at] = random() as u8;
            }
            if random() % 4 == 0 {
                damaged.truncate(random() % file.len());
            }
            harness::check(&damaged);
        }
    }
}
