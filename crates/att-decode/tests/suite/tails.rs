//! The end of a chunk, where the generations differ. Real chunks end in padding; these end in a token.

use wavescope_att_decode::{Decoder, Generation, NoInstructions, Options, Record, assemble};

/// Starts and ends of waves that a chunk tells: slot, and whether it is a start.
fn occupancy(chunk: &[u8]) -> Vec<(u8, bool)> {
    let mut all = Vec::new();
    Decoder::new(NoInstructions, Options::default())
        .decode(chunk, &mut |record: Record<'_>| {
            let Record::Occupancy(records) = record else { return };
            all.extend(records.iter().map(|record| (record.wave_id, record.is_start())));
        })
        .unwrap();
    all
}

/// A WAVE_END of 20 bits of which 16 are there. The lowest bit of its slot is among them.
#[test]
fn a_token_cut_off_is_read_on_in_zeros_up_to_gfx11_and_dropped_behind() {
    let generations =
        [(Generation::Gfx10, 2, true), (Generation::Gfx11, 3, true), (Generation::Gfx12, 4, false)];
    for (generation, version, is_taken) in generations {
        let text = format!("HEADER version={version}\nWAVE_START slot=1\nWAVE_END slot=1");
        let mut chunk = assemble::tokens(generation, &text).unwrap();
        let whole = [(1, true), (1, false)];
        assert_eq!(occupancy(&chunk), whole, "{generation:?}");
        chunk.pop();
        assert_eq!(occupancy(&chunk), whole[..1 + usize::from(is_taken)], "{generation:?}");
    }
}

/// gfx10 and gfx11 give up in front of a window of padding near the end, with nothing held back: the token behind it is
/// never read. Where less padding is between, or another generation reads, it is.
#[test]
fn a_token_behind_padding_at_the_very_end_is_lost_up_to_gfx11() {
    let generations = [(Generation::Gfx10, 2), (Generation::Gfx11, 3), (Generation::Gfx12, 4)];
    for (generation, version) in generations {
        for (padding, is_near) in [(21, false), (2, true)] {
            let start = format!("HEADER version={version}\nWAVE_START slot=1");
            let mut chunk = assemble::tokens(generation, &start).unwrap();
            chunk.resize(chunk.len() + padding, 0);
            let end = format!("HEADER version={version}\nWAVE_END slot=1");
            chunk.extend_from_slice(&assemble::tokens(generation, &end).unwrap()[8..]);
            let is_told = occupancy(&chunk).contains(&(1, false));
            assert_eq!(is_told, is_near || generation == Generation::Gfx12, "{generation:?}, {padding}");
        }
    }
}

/// A header and nothing else: gfx12 has nothing to say, gfx10 and gfx11 do not even read the header, gfx9 calls it an
/// error.
#[test]
fn eight_bytes_are_a_chunk_of_rdna_only() {
    for (generation, version) in [(Generation::Gfx10, 2), (Generation::Gfx11, 3), (Generation::Gfx12, 4)] {
        let chunk = assemble::tokens(generation, &format!("HEADER version={version}")).unwrap();
        assert_eq!(chunk.len(), 8);
        assert_eq!(occupancy(&chunk), []);
    }
    let chunk = assemble::tokens(Generation::Gfx9, "SW_HEADER version=5").unwrap();
    let result = Decoder::new(NoInstructions, Options::default()).decode(&chunk, &mut |_: Record<'_>| {});
    assert_eq!(result.unwrap_err().status(), 4);
}
