//! Random programs.

use proptest::prelude::*;
use wavescope_isa::{CodeObject, Generation, InstructionClass as Class, Instructions, Target, decode};
use wavescope_workload::kernels;

/// One piece of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    /// An instruction of the pool.
    Plain(u16),
    /// A conditional branch to a piece.
    Conditional(u16),
    /// `s_branch` forwards, over so many pieces.
    Jump(u16),
    /// The same through registers.
    Far(u16),
    /// A call of the function behind the program.
    Call,
    /// All waves of the work-group meet.
    Barrier,
}

/// A program and how it is launched.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    /// The program.
    pub(crate) pieces: Vec<Piece>,
    /// In waves of 32, where the chip has them.
    pub(crate) narrow: bool,
    /// Work-items, of all and of a group.
    pub(crate) grid: u32,
    pub(crate) workgroup: u16,
}

/// Any program on a grid of at least `least` work-items.
pub(crate) fn randoms(least: u32) -> impl Strategy<Value = Random> {
    let grid = (least..4 * least, 1_u16..=4);
    (pieces(), any::<bool>(), grid).prop_map(|(pieces, narrow, (grid, waves))| Random {
        pieces,
        narrow,
        grid,
        workgroup: waves * 64,
    })
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        12 => any::<u16>().prop_map(Piece::Plain),
        1 => any::<u16>().prop_map(Piece::Jump),
        1 => any::<u16>().prop_map(Piece::Far),
        1 => Just(Piece::Call),
        1 => Just(Piece::Barrier),
    ];
    let branches = proptest::collection::vec((any::<u16>(), any::<u16>()), 0..=3);
    (proptest::collection::vec(piece, 1..40), branches).prop_map(|(mut pieces, branches)| {
        for (place, target) in branches {
            pieces.insert(usize::from(place) % pieces.len(), Piece::Conditional(target));
        }
        pieces
    })
}

/// Words that the generations encode differently: `s_branch`, `s_cbranch_scc0`, `s_endpgm`, the opcodes of
/// `s_getpc_b64`, `s_setpc_b64` and `s_swappc_b64`, and the barrier (AMD's instruction-set documents, SOPP and SOP1).
struct Words {
    branch: u32,
    conditional: u32,
    end: u32,
    get_pc: u32,
    barrier: &'static [u32],
}

fn words(target: Target) -> Words {
    let old = Words {
        branch: 0xBF82_0000,
        conditional: 0xBF84_0000,
        end: 0xBF81_0000,
        get_pc: 0x1C,
        barrier: &[0xBF8A_0000],
    };
    let new = Words {
        branch: 0xBFA0_0000,
        conditional: 0xBFA1_0000,
        end: 0xBFB0_0000,
        get_pc: 0x47,
        barrier: &[0xBFBD_0000],
    };
    match target.generation() {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => old,
        Generation::Gfx10 | Generation::Gfx10_3 => Words { get_pc: 0x1F, ..old },
        Generation::Gfx11 | Generation::Gfx11_5 => new,
        // s_barrier_signal and s_barrier_wait of barrier -1, the work-group's.
        Generation::Gfx12 | Generation::Gfx1250 => Words { barrier: &[0xBE80_4EC1, 0xBF94_FFFF], ..new },
    }
}

/// Instructions that go on to the next one, taken from compiled kernels.
pub(crate) fn pool(name: &str, target: Target) -> Vec<Vec<u8>> {
    let mut pool = Vec::new();
    for file in [kernels::vectors(name).unwrap(), kernels::tiles(name).unwrap()] {
        for code in CodeObject::parse(file).unwrap().code() {
            for (offset, found) in Instructions::new(target, code.bytes) {
                let Ok(found) = found else { continue };
                let plain = found.branch_offset().is_none() && !found.is_indirect() && !found.ends_program();
                let known = !matches!(found.class(), Class::Branch | Class::Barrier9 | Class::Unknown);
                let name = found.mnemonic();
                let waits = name.contains("barrier") || name.contains("code_end") || name.contains("getpc");
                if plain && known && !waits {
                    pool.push(code.bytes[offset..offset + found.size()].to_vec());
                }
            }
        }
    }
    pool.sort();
    pool.dedup();
    assert!(pool.len() > 50, "{}", pool.len());
    pool
}

/// Instructions of gfx10.3, for which no kernels were compiled, by words of AMD's RDNA 2 instruction-set document.
pub(crate) fn pool_of_gfx10() -> Vec<Vec<u8>> {
    let known: [(&str, &[u32]); 24] = [
        ("v_add_f32", &[0x0600_0300]),
        ("v_add_f32", &[0x0600_00FF, 0x4000_0001]),
        ("v_mul_f32", &[0x1000_0300]),
        ("v_mov_b32", &[0x7E04_0301]),
        ("v_rcp_f32", &[0x7E04_5501]),
        ("v_fma_f32", &[0xD54B_0000, 0x0406_0300]),
        ("s_mov_b32", &[0xBE80_0380]),
        ("s_mov_b32", &[0xBE80_03FF, 0x1234_5678]),
        ("s_add_u32", &[0x8000_0100]),
        ("s_cmp_eq_u32", &[0xBF06_0100]),
        ("s_movk_i32", &[0xB000_0005]),
        ("s_load_dword", &[0xF400_0100, 0xFA00_0000]),
        ("global_load_dword", &[0xDC30_8000, 0x007D_0000]),
        ("global_store_dword", &[0xDC70_8000, 0x007D_0200]),
        ("flat_load_dword", &[0xDC30_0000, 0x007D_0000]),
        ("ds_read_b32", &[0xD8D8_0000, 0x0000_0001]),
        ("ds_write_b32", &[0xD834_0000, 0x0000_0201]),
        ("buffer_load_dword", &[0xE030_1000, 0x8000_0001]),
        ("s_waitcnt", &[0xBF8C_0000]),
        ("s_nop", &[0xBF80_0000]),
        ("s_sleep", &[0xBF8E_0001]),
        ("s_clause", &[0xBFA1_0001]),
        ("s_inst_prefetch", &[0xBFA0_0003]),
        ("s_sendmsg", &[0xBF90_0003]),
    ];
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    for (name, words) in known {
        let found = decode(Target::Gfx1030, &bytes(words)).unwrap();
        assert_eq!((found.mnemonic(), found.size()), (name, words.len() * 4));
    }
    known.iter().map(|(_, words)| bytes(words)).collect()
}

/// Puts a program together; its function follows the end.
pub(crate) fn assemble(target: Target, pool: &[Vec<u8>], pieces: &[Piece]) -> Vec<u8> {
    let words = words(target);
    let size = |piece: &Piece| match piece {
        Piece::Plain(index) => pool[usize::from(*index) % pool.len()].len(),
        Piece::Conditional(_) | Piece::Jump(_) => 4,
        Piece::Far(_) | Piece::Call => 20,
        Piece::Barrier => words.barrier.len() * 4,
    };
    let mut starts = vec![0];
    pieces.iter().for_each(|piece| starts.push(starts.last().unwrap() + size(piece)));
    let function = starts[pieces.len()] + 4;
    let mut code: Vec<u8> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let forwards = |distance: u16| starts[index + 1 + usize::from(distance) % (pieces.len() - index)];
        let here = code.len();
        match *piece {
            Piece::Plain(instruction) => code.extend(&pool[usize::from(instruction) % pool.len()]),
            Piece::Conditional(to) => {
                let to = starts[usize::from(to) % (pieces.len() + 1)];
                push(&mut code, words.conditional | distance(here, to));
            }
            Piece::Jump(over) => push(&mut code, words.branch | distance(here, forwards(over))),
            Piece::Far(over) => through_registers(&mut code, &words, forwards(over), 1),
            Piece::Call => through_registers(&mut code, &words, function, 2),
            Piece::Barrier => words.barrier.iter().for_each(|&word| push(&mut code, word)),
        }
    }
    push(&mut code, words.end);
    // v_nop; s_setpc_b64 s[30:31].
    push(&mut code, 0x7E00_0000);
    push(&mut code, 0xBE80_001E | (words.get_pc + 1) << 8);
    code
}

fn push(code: &mut Vec<u8>, word: u32) {
    code.extend(word.to_le_bytes());
}

/// Dwords from behind a branch to where it goes.
fn distance(here: usize, to: usize) -> u32 {
    u32::from(((to as i64 - here as i64 - 4) / 4) as u16)
}

/// `s_getpc_b64 s[40:41]`, the distance added, `s_setpc_b64 s[40:41]` (1) or `s_swappc_b64 s[30:31], s[40:41]` (2).
fn through_registers(code: &mut Vec<u8>, words: &Words, to: usize, how: u32) {
    let behind = code.len() + 4;
    push(code, 0xBE80_0000 | 40 << 16 | words.get_pc << 8);
    push(code, 0x8000_FF00 | 40 << 16 | 40);
    push(code, (to as i64 - behind as i64) as u32);
    // The upper half: the carry, and for a distance back its sign; distances here are forwards.
    push(code, 0x8200_8000 | 41 << 16 | 41);
    push(code, 0xBE80_0000 | if how == 2 { 30 << 16 } else { 0 } | (words.get_pc + how) << 8 | 40);
}
