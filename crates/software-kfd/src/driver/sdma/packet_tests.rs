//! Packets put together by the bit positions of the public header, one field at a time.

use super::*;

fn parse_all(dwords: &[u32], layout: Layout) -> Result<(Packet, u64), Unreadable> {
    let load = |index: u64| dwords[index as usize];
    parse(&Words { load: &load, count: dwords.len() as u64 }, layout)
}

#[test]
fn linear_copy_counts_from_one() {
    let dwords = [1, 4095, 0, 0x1000, 0x7F00, 0x2000, 0x7F01];
    let copy = Packet::Copy { from: 0x7F00_0000_1000, to: 0x7F01_0000_2000, also_to: None, bytes: 4096 };
    assert_eq!(parse_all(&dwords, Layout::Classic), Ok((copy, 7)));
}

#[test]
fn broadcast_bit_adds_a_destination() {
    let dwords = [1 | 1 << 27, 0, 0, 1, 0, 2, 0, 3, 0];
    let copy = Packet::Copy { from: 1, to: 2, also_to: Some(3), bytes: 1 };
    assert_eq!(parse_all(&dwords, Layout::Gfx12), Ok((copy, 9)));
}

#[test]
fn no_operation_skips_the_dwords_that_it_counts() {
    assert_eq!(parse_all(&[5 << 16], Layout::Classic), Ok((Packet::Nothing, 6)));
    assert_eq!(parse_all(&[0], Layout::Classic), Ok((Packet::Nothing, 1)));
}

#[test]
fn signal_decrement_is_a_64_bit_atomic_add_of_minus_one() {
    // SDMA_ATOMIC_ADD64 is 47.
    let dwords = [10 | 47 << 25, 0x88, 0, u32::MAX, u32::MAX, 0, 0, 0];
    let atomic = Packet::Atomic {
        at: 0x88,
        operation: Atomic::Add,
        source: Value::Quad(u64::MAX),
        compare: 0,
        until_equal: false,
    };
    assert_eq!(parse_all(&dwords, Layout::Classic), Ok((atomic, 8)));
}

#[test]
fn poll_of_memory_waits_and_flush_of_the_host_path_does_not() {
    let poll = [8 | 3 << 28 | 1 << 31, 0x10, 0, 7, u32::MAX, 0xFFF_0004];
    let wanted = Packet::Poll {
        at: 0x10,
        mask: u64::from(u32::MAX),
        condition: Condition::Equal,
        reference: Value::Dword(7),
    };
    assert_eq!(parse_all(&poll, Layout::Classic), Ok((wanted, 6)));
    // `hdp_flush_cmd` of the header.
    assert_eq!(parse_all(&[8, 0, 0x8000_0000, 0, 0, 0], Layout::Classic), Ok((Packet::Nothing, 6)));
}

#[test]
fn fill_of_dwords_counts_bytes_from_the_last_dword() {
    let fill = parse_all(&[11 | 2 << 30, 0x40, 0, 0xABCD_1234, (100 - 1) * 4], Layout::Classic);
    let wanted = Packet::Fill { to: 0x40, bytes: 400, pattern: Pattern::Dword(0xABCD_1234) };
    assert_eq!(fill, Ok((wanted, 5)));
}

#[test]
fn box_fields_lie_where_each_generation_has_them() {
    let wanted = CopyBox {
        from: Volume { base: 0x100, start: [1, 0, 3], pitch: 64, slice: 1000 },
        to: Volume { base: 0x900, start: [0, 2, 0], pitch: 128, slice: 2000 },
        extent: [16, 8, 2],
        element: 2,
    };
    let header = 1 | 4 << 8 | 2 << 29;
    let classic =
        [header, 0x100, 0, 1, 3 | 63 << 13, 999, 0x900, 0, 2 << 16, 127 << 13, 1999, 15 | 7 << 16, 1];
    assert_eq!(parse_all(&classic, Layout::Classic), Ok((Packet::CopyBox(wanted), 13)));
    let gfx12 = [header, 0x100, 0, 1, 3 | 63 << 16, 999, 0x900, 0, 2 << 16, 127 << 16, 1999, 15 | 7 << 16, 1];
    assert_eq!(parse_all(&gfx12, Layout::Gfx12), Ok((Packet::CopyBox(wanted), 13)));
    assert_ne!(parse_all(&classic, Layout::Gfx12), parse_all(&classic, Layout::Classic));
}

#[test]
fn packet_that_is_not_all_there_is_incomplete_at_every_cut() {
    let packets: [&[u32]; 8] = [
        &[1, 0, 0, 0, 0, 0, 0],
        &[1 | 4 << 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 1, 5, 6],
        &[5, 0, 0, 0],
        &[6, 0],
        &[8 | 1 << 31 | 3 << 28, 0, 0, 0, 0, 0],
        &[10 | 47 << 25, 0, 0, 0, 0, 0, 0, 0],
        &[17 | 1 << 8, 0, 0, 0, 0],
    ];
    for packet in packets {
        assert_eq!(parse_all(packet, Layout::Classic).unwrap().1, packet.len() as u64, "{packet:?}");
        for cut in 0..packet.len() {
            assert_eq!(parse_all(&packet[..cut], Layout::Classic), Err(Unreadable::Incomplete), "{packet:?}");
        }
    }
}

#[test]
fn unknown_operations_are_refused() {
    for header in [0xFF, 1 | 1 << 8, 13, 10 | 3 << 25] {
        assert_eq!(parse_all(&[header; 9], Layout::Classic), Err(Unreadable::Unknown { header }));
    }
}
