//! Which instructions of a trace took most: their places, kernels and mnemonics.

use std::collections::HashMap;

use wavescope_att_decode::{Instruction, Pc};
use wavescope_isa::{CodeObject, Target};

use super::results::{CodeObject as Loaded, Hot};

/// How many are shown of a trace.
const SHOWN: usize = 3;

/// Adds up instructions by place.
#[derive(Debug, Default)]
pub(super) struct Heat {
    places: HashMap<Pc, Spent>,
    /// Instructions of the detailed waves, located or not.
    pub(super) instructions: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    hits: u64,
    clocks: u64,
}

impl Heat {
    /// Takes the instructions of one wave.
    pub(super) fn take(&mut self, instructions: &[Instruction]) {
        self.instructions += instructions.len();
        for instruction in instructions.iter().filter(|instruction| instruction.pc.is_valid()) {
            let spent = self.places.entry(instruction.pc).or_default();
            spent.hits += 1;
            spent.clocks += u64::try_from(instruction.duration).unwrap_or(0);
        }
    }

    /// The places with most clocks, hottest first, with what stands there.
    pub(super) fn hottest(&self, target: &str, code: &[Loaded]) -> Vec<Hot> {
        let mut places: Vec<_> = self.places.iter().map(|(&pc, &spent)| (pc, spent)).collect();
        places.sort_by_key(|&(pc, spent)| (std::cmp::Reverse(spent.clocks), pc));
        places.truncate(SHOWN);
        places.into_iter().map(|(pc, spent)| hot(pc, spent, target, code)).collect()
    }
}

fn hot(pc: Pc, spent: Spent, target: &str, code: &[Loaded]) -> Hot {
    let named = name(pc, target, code);
    let (kernel, offset, mnemonic) = named.unwrap_or_else(|| (String::new(), pc.address, String::new()));
    let Spent { hits, clocks } = spent;
    Hot { code_object: pc.code_object_id, address: pc.address, kernel, offset, mnemonic, hits, clocks }
}

/// Kernel, offset in it, and mnemonic of the instruction at `pc`; `None` where the place is in no known code.
fn name(pc: Pc, target: &str, code: &[Loaded]) -> Option<(String, u64, String)> {
    let loaded = code.iter().find(|loaded| loaded.id == pc.code_object_id)?;
    let object = CodeObject::parse(loaded.content).ok()?;
    let target: Target = target.parse().ok()?;
    let mnemonic = object.decode_at(target, pc.address).ok()?.mnemonic().to_owned();
    let (kernel, offset) = match object.symbol_at(pc.address) {
        Some((symbol, offset)) => (symbol.name.to_owned(), offset),
        None => (String::new(), pc.address),
    };
    Some((kernel, offset, mnemonic))
}
