//! Packets executed on this process's own memory, which the page tables do not know and the kernel vouches for.

use std::ptr;
use std::sync::Arc;

use super::*;
use crate::driver::host::GpuHost;

fn memory() -> Memory {
    Memory::new(Arc::new(GpuHost::for_test()))
}

fn address<T>(value: &mut T) -> u64 {
    ptr::from_mut(value) as u64
}

fn run(packet: &Packet) -> Result<Outcome, Fault> {
    execute(packet, &memory())
}

#[test]
fn copy_moves_the_bytes_to_both_places_and_no_more() {
    let mut from: [u8; 64] = std::array::from_fn(|index| index as u8);
    let (mut to, mut also) = ([0xEE_u8; 64], [0xEE_u8; 64]);
    let copy = Packet::Copy {
        from: address(&mut from) + 3,
        to: address(&mut to),
        also_to: Some(address(&mut also)),
        bytes: 61 - 8,
    };
    assert_eq!(run(&copy), Ok(Outcome::Done));
    assert_eq!(to[..53], from[3..56]);
    assert_eq!(to[53..], [0xEE; 11]);
    assert_eq!(also, to);
}

#[test]
fn swap_exchanges_and_refuses_blocks_that_overlap() {
    let (mut a, mut b) = ([1_u8; 128], [2_u8; 128]);
    let (at_a, at_b) = (address(&mut a), address(&mut b));
    assert_eq!(run(&Packet::Swap { a: at_a, b: at_b, bytes: 128 }), Ok(Outcome::Done));
    assert_eq!((a, b), ([2; 128], [1; 128]));
    assert!(run(&Packet::Swap { a: at_a, b: at_a + 64, bytes: 128 }).is_err());
}

#[test]
fn box_copy_agrees_with_indexing_in_three_dimensions() {
    const PITCH: usize = 10;
    const SLICE: usize = 70;
    let mut from: Vec<u32> = (0..3 * SLICE as u32).collect();
    let mut to = vec![0_u32; 5 * 4 * 2];
    let copy = CopyBox {
        from: Volume {
            base: from.as_mut_ptr() as u64,
            start: [2, 1, 1],
            pitch: PITCH as u64,
            slice: SLICE as u64,
        },
        to: Volume { base: to.as_mut_ptr() as u64, start: [1, 0, 0], pitch: 5, slice: 20 },
        extent: [4, 3, 2],
        element: 2,
    };
    assert_eq!(run(&Packet::CopyBox(copy)), Ok(Outcome::Done));
    let mut expected = vec![0_u32; to.len()];
    for (z, y, x) in (0..2).flat_map(|z| (0..3).flat_map(move |y| (0..4).map(move |x| (z, y, x)))) {
        expected[z * 20 + y * 5 + x + 1] = from[(z + 1) * SLICE + (y + 1) * PITCH + x + 2];
    }
    assert_eq!(to, expected);
}

#[test]
fn fill_repeats_each_kind_of_pattern() {
    let mut bytes = [0_u8; 12];
    let to = address(&mut bytes);
    run(&Packet::Fill { to, bytes: 12, pattern: Pattern::Dword(0x0403_0201) }).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
    run(&Packet::Fill { to, bytes: 4, pattern: Pattern::Word(0x0908) }).unwrap();
    run(&Packet::Fill { to: to + 4, bytes: 3, pattern: Pattern::Byte(5) }).unwrap();
    assert_eq!(bytes, [8, 9, 8, 9, 5, 5, 5, 4, 1, 2, 3, 4]);
}

#[test]
fn atomics_match_integer_arithmetic_in_both_widths() {
    let narrow = |operation, before: u32, source| {
        let mut word = before;
        let at = address(&mut word);
        let packet =
            Packet::Atomic { at, operation, source: Value::Dword(source), compare: 5, until_equal: false };
        assert_eq!(run(&packet), Ok(Outcome::Done));
        word
    };
    assert_eq!(narrow(Atomic::Subtract, 1, 2), u32::MAX);
    assert_eq!(narrow(Atomic::SignedMinimum, 1, u32::MAX), u32::MAX);
    assert_eq!(narrow(Atomic::Minimum, 1, u32::MAX), 1);
    assert_eq!(narrow(Atomic::SignedMaximum, u32::MAX, 3), 3);
    assert_eq!(narrow(Atomic::CompareSwap, 5, 9), 9);
    assert_eq!(narrow(Atomic::CompareSwap, 6, 9), 6);
    assert_eq!(narrow(Atomic::Xor, 0b1100, 0b1010), 0b0110);
    let mut quad = 1_u64 << 40;
    let packet = Packet::Atomic {
        at: address(&mut quad),
        operation: Atomic::Add,
        source: Value::Quad(u64::MAX),
        compare: 0,
        until_equal: false,
    };
    run(&packet).unwrap();
    assert_eq!(quad, (1 << 40) - 1);
}

#[test]
fn poll_waits_until_the_masked_value_satisfies_it() {
    let mut word = 0x1F_u32;
    let at = address(&mut word);
    let poll = |condition, reference| {
        run(&Packet::Poll { at, mask: 0xF, condition, reference: Value::Dword(reference) }).unwrap()
    };
    assert_eq!(poll(Condition::Equal, 0xF), Outcome::Done);
    assert_eq!(poll(Condition::Equal, 0x1F), Outcome::Waiting);
    assert_eq!(poll(Condition::Less, 0xF), Outcome::Waiting);
    assert_eq!(poll(Condition::GreaterOrEqual, 0xF), Outcome::Done);
    assert_eq!(poll(Condition::NotEqual, 3), Outcome::Done);
}

#[test]
fn access_that_the_process_may_not_make_is_a_fault_with_its_address() {
    static CONSTANT: [u8; 16] = [7; 16];
    let mut to = [0_u8; 16];
    let constant = CONSTANT.as_ptr() as u64;
    let copy = Packet::Copy { from: 0x10, to: address(&mut to), also_to: None, bytes: 16 };
    assert_eq!(run(&copy), Err(Fault { address: 0x10, access: Access::Read }));
    let copy = Packet::Copy { from: address(&mut to), to: constant, also_to: None, bytes: 16 };
    assert_eq!(run(&copy), Err(Fault { address: constant, access: Access::Write }));
}
