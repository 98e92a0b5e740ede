//! What must hold for any bytes: run by the fuzz target and, with random and damaged input, by the tests.

use crate::code_object::CodeObject;
use crate::decode::decode;
use crate::error::Error;
use crate::instructions::Instructions;
use crate::target::Target;

/// Reads `bytes` as code of some target and as a code object. The first byte chooses the target, where there is one.
///
/// # Panics
///
/// When a promise of this crate is broken.
pub fn check(bytes: &[u8]) {
    let choice = bytes.first().map_or(0, |byte| usize::from(*byte));
    let target = Target::ALL[choice % Target::ALL.len()];
    walk(target, bytes.get(1..).unwrap_or_default());
    if let Ok(object) = CodeObject::parse(bytes) {
        read(&object, target);
    }
}

/// Linear decoding goes on and ends.
fn walk(target: Target, bytes: &[u8]) {
    let mut next = 0;
    for (offset, found) in Instructions::new(target, bytes) {
        assert_eq!(offset, next, "{target}: the walk skipped or repeated bytes");
        match found {
            Ok(instruction) => {
                let size = instruction.size();
                assert!(
                    (4..=20).contains(&size) && size.is_multiple_of(4),
                    "{target}: {size} bytes at {offset}"
                );
                assert!(!instruction.mnemonic().is_empty(), "{target}: no name at {offset}");
                next += size;
            }
            Err(Error::Truncated { needed, available }) => {
                assert!(needed > available, "{target}: enough bytes at {offset}");
                next = bytes.len();
            }
            Err(_) => next += 4,
        }
    }
    assert_eq!(next, bytes.len(), "{target}: the walk ended early");
}

/// Everything that an object tells is consistent.
fn read(object: &CodeObject<'_>, target: Target) {
    let target = object.target().unwrap_or(target);
    for code in object.code().iter().take(8) {
        walk(target, code.bytes);
    }
    for kernel in object.kernels() {
        let found = object.kernel_at(kernel.descriptor_vaddr);
        assert!(found.is_some_and(|found| found.symbol == kernel.symbol), "descriptor leads elsewhere");
        let entry = kernel.entry_vaddr();
        if let (Some(bytes), Ok(instruction)) = (object.bytes_at(entry), object.decode_at(target, entry)) {
            assert_eq!(Ok(instruction), decode(target, bytes), "two answers for one address");
        }
    }
    for symbol in object.symbols().iter().take(256) {
        if let Some((found, offset)) = object.symbol_at(symbol.vaddr) {
            assert_eq!(found.vaddr.checked_add(offset), Some(symbol.vaddr), "offset does not add up");
        }
    }
}
