//! Encoding and decoding are inverse, and a decoder survives anything.

use proptest::prelude::*;
use wavescope_pm4::{
    AcquireMem, CopyControl, CopyData, Decoder, Error, EventWrite, Generation, GrbmGfxIndex, IndirectBuffer,
    Opcode, Packet, PredExec, RegisterSpace, SetRegs, Unknown, WaitRegMem,
};

const TYPED: [Opcode; 8] = [
    Opcode::SET_SH_REG,
    Opcode::SET_UCONFIG_REG,
    Opcode::EVENT_WRITE,
    Opcode::COPY_DATA,
    Opcode::ACQUIRE_MEM,
    Opcode::WAIT_REG_MEM,
    Opcode::PRED_EXEC,
    Opcode::INDIRECT_BUFFER,
];

/// A packet that owns its variable part.
#[derive(Clone, Debug)]
enum Owned {
    Set(RegisterSpace, u32, Vec<u32>),
    Plain(Packet<'static>),
    Unknown(Opcode, Vec<u32>),
}

impl Owned {
    fn packet(&self) -> Packet<'_> {
        match self {
            Self::Set(space, offset, values) => {
                Packet::SetRegs(SetRegs { space: *space, offset: *offset, values })
            }
            Self::Plain(packet) => *packet,
            Self::Unknown(opcode, body) => Packet::Unknown(Unknown { opcode: *opcode, body }),
        }
    }
}

fn dwords(min: usize) -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), min..20)
}

fn packets() -> impl Strategy<Value = Owned> {
    let space = prop_oneof![Just(RegisterSpace::Sh), Just(RegisterSpace::Uconfig)];
    prop_oneof![
        (space, any::<u32>(), dwords(1))
            .prop_map(|(space, offset, values)| Owned::Set(space, offset, values)),
        any::<u32>().prop_map(|event| Owned::Plain(Packet::EventWrite(EventWrite(event)))),
        any::<u32>().prop_map(|predicate| Owned::Plain(Packet::PredExec(PredExec(predicate)))),
        (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(control, source, destination)| {
            Owned::Plain(Packet::CopyData(CopyData { control: CopyControl(control), source, destination }))
        }),
        (any::<u32>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<Option<u32>>()).prop_map(
            |(coher_cntl, size, base, poll_interval, gcr_cntl)| {
                let acquire = AcquireMem { coher_cntl, size, base, poll_interval, gcr_cntl };
                Owned::Plain(Packet::AcquireMem(acquire))
            }
        ),
        (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()).prop_map(
            |(control, address, reference, mask, poll_interval)| {
                let wait = WaitRegMem { control, address, reference, mask, poll_interval };
                Owned::Plain(Packet::WaitRegMem(wait))
            }
        ),
        (any::<u64>(), any::<u32>()).prop_map(|(address, control)| {
            Owned::Plain(Packet::IndirectBuffer(IndirectBuffer { address, control }))
        }),
        (any::<u8>().prop_map(Opcode), dwords(0))
            .prop_filter("typed opcodes decode as themselves", |(opcode, _)| !TYPED.contains(opcode))
            .prop_map(|(opcode, body)| Owned::Unknown(opcode, body)),
    ]
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(packets in proptest::collection::vec(packets(), 0..12)) {
        let mut dwords = Vec::new();
        let mut offsets = Vec::new();
        for packet in &packets {
            offsets.push(dwords.len());
            packet.packet().encode(&mut dwords);
        }
        let decoded: Vec<_> = Decoder::new(&dwords).collect::<Result<_, _>>()?;
        prop_assert_eq!(decoded.iter().map(|located| located.offset).collect::<Vec<_>>(), offsets);
        for (located, packet) in decoded.iter().zip(&packets) {
            prop_assert_eq!(located.packet, packet.packet());
        }
    }

    #[test]
    fn every_dword_of_any_buffer_is_accounted_for(dwords in proptest::collection::vec(any::<u32>(), 0..64)) {
        let mut decoder = Decoder::new(&dwords);
        let mut reached = 0;
        while let Some(item) = decoder.next() {
            let offset = item.map_or_else(Error::offset, |located| located.offset);
            prop_assert_eq!(offset, reached);
            prop_assert!(decoder.offset() > reached);
            reached = decoder.offset();
        }
        prop_assert_eq!(reached, dwords.len());
    }

    #[test]
    fn a_selection_within_its_fields_survives(
        se in proptest::option::of(0u8..16), sa in proptest::option::of(0u8..4),
        instance in proptest::option::of(0u8..128), newest in any::<bool>(),
    ) {
        let generation = if newest { Generation::Gfx12 } else { Generation::Gfx9 };
        let index = GrbmGfxIndex { se, sa, instance };
        prop_assert_eq!(GrbmGfxIndex::decode(generation, index.encode(generation)), index);
    }
}

#[test]
fn errors_name_the_dword_and_decoding_goes_on() {
    let dwords = [0x1234_5678, 0xC000_4600, 0x407, 0xC001_4600, 1, 2, 0xC001_7900];
    let items: Vec<_> = Decoder::new(&dwords).collect();
    assert_eq!(items[0], Err(Error::NotType3 { offset: 0, value: 0x1234_5678 }));
    assert_eq!(items[1].unwrap().packet, Packet::EventWrite(EventWrite::CS_PARTIAL_FLUSH));
    assert_eq!(items[2], Err(Error::Length { offset: 3, value: 0xC001_4600, dwords: 3 }));
    let truncated = Error::Truncated { offset: 6, value: 0xC001_7900, needed: 3, available: 1 };
    assert_eq!(items[3], Err(truncated));
    assert_eq!(items.len(), 4);
}
