//! Compile-time construction of the per-generation tables from the rows.

use super::formats::Formats;
use super::row::Row;
use super::{NAME_COUNT, NAMES, Prefix, SECTIONS};
use crate::class::InstructionClass;
use crate::encoding::Encoding;
use crate::opcode::{Opcode, Traits};
use crate::target::Generation;

/// Traits of each name: computed once, since every generation needs them.
const TRAITS: [Traits; NAME_COUNT] = {
    let mut traits = [Traits::of_name(""); NAME_COUNT];
    let mut name = Encoding::COUNT;
    while name < NAME_COUNT {
        traits[name] = Traits::of_name(NAMES[name]);
        name += 1;
    }
    traits
};

/// Class of each name where no generation is special.
const CLASSES: [InstructionClass; NAME_COUNT] = {
    let mut classes = [InstructionClass::Unknown; NAME_COUNT];
    let mut name = Encoding::COUNT;
    while name < NAME_COUNT {
        classes[name] = InstructionClass::of_name(NAMES[name]);
        name += 1;
    }
    classes
};

/// How many opcodes the formats have room for.
pub(super) const fn opcode_count(formats: Formats) -> usize {
    let mut count = 0;
    let mut number = 0;
    while number < formats[0].len() + formats[1].len() {
        count += get(&formats, number).opcodes();
        number += 1;
    }
    count
}

const fn get(formats: &Formats, number: usize) -> &'static super::Format {
    let [short, long] = *formats;
    if number < short.len() { &short[number] } else { &long[number - short.len()] }
}

/// By the first 9 bits: the format with the longest prefix that they begin with.
pub(super) const fn prefixes(formats: Formats) -> [Option<Prefix>; 512] {
    let mut prefixes: [Option<Prefix>; 512] = [None; 512];
    let mut base = 0;
    let mut number = 0;
    while number < formats[0].len() + formats[1].len() {
        let format = get(&formats, number);
        let free = 9 - format.prefix_length;
        let first = (format.prefix as usize) << free;
        let mut bits = first;
        while bits < first + (1 << free) {
            let shorter = match prefixes[bits] {
                Some(other) => other.format.prefix_length < format.prefix_length,
                None => true,
            };
            if shorter {
                prefixes[bits] = Some(Prefix { format, base });
            }
            bits += 1;
        }
        base += format.opcodes() as u16;
        number += 1;
    }
    prefixes
}

/// The opcodes of all formats, one format after the other; those of later `generations` win.
pub(super) const fn opcodes<const N: usize>(formats: Formats, generations: &[Generation]) -> [Opcode; N] {
    let mut opcodes = [Opcode::unnamed(Encoding::Exp); N];
    let mut base = 0;
    let mut number = 0;
    while number < formats[0].len() + formats[1].len() {
        let format = get(&formats, number);
        let mut part = 0;
        while part < format.encodings.len() {
            let (encoding, offset) = format.encodings[part];
            let (from, end) = (base + offset as usize, base + format.opcodes());
            let mut at = from;
            while at < end {
                opcodes[at] = Opcode::unnamed(encoding);
                at += 1;
            }
            named(&mut opcodes, encoding, (from, end), generations);
            part += 1;
        }
        base += format.opcodes();
        number += 1;
    }
    opcodes
}

/// Writes the named opcodes of one encoding into `range`.
const fn named(
    opcodes: &mut [Opcode],
    encoding: Encoding,
    range: (usize, usize),
    generations: &[Generation],
) {
    let own = generations[generations.len() - 1];
    let mut at = 0;
    while at < generations.len() {
        let generation = generations[at];
        if matches!(encoding, Encoding::Vop3) {
            // Compares: the numbers of VOPC, two sources.
            fill(opcodes, (Encoding::Vopc, encoding), range, (generation, own));
        }
        fill(opcodes, (encoding, encoding), range, (generation, own));
        at += 1;
    }
}

/// Writes the rows of encoding `from`, as those of encoding `to`, that `generation` has.
const fn fill(
    opcodes: &mut [Opcode],
    (from, to): (Encoding, Encoding),
    (first, end): (usize, usize),
    (generation, own): (Generation, Generation),
) {
    let (name, rows) = section(from);
    let mut at = 0;
    while at < rows.len() {
        let row = &rows[at];
        let place = first + row.opcode as usize;
        if row.is_in(generation) && place < end {
            opcodes[place] = opcode(row, name + at, to, own);
            if matches!((from, to), (Encoding::Vopc, Encoding::Vop3)) {
                opcodes[place].reads = 0b011;
            }
        }
        at += 1;
    }
}

const fn opcode(row: &Row, name: usize, encoding: Encoding, generation: Generation) -> Opcode {
    let class = CLASSES[name].of_name_on(generation.gfxip(), NAMES[name]);
    Opcode { name: name as u16, traits: TRAITS[name], class, encoding, reads: row.reads }
}

/// Rows of an encoding, and where their names begin.
const fn section(encoding: Encoding) -> (usize, &'static [Row]) {
    let mut name = Encoding::COUNT;
    let mut at = 0;
    while at < SECTIONS.len() {
        let (other, rows) = SECTIONS[at];
        if other as u8 == encoding as u8 {
            return (name, rows);
        }
        name += rows.len();
        at += 1;
    }
    (name, &[])
}

/// The pairs of a generation that count as one instruction.
pub(super) const fn pairs<const N: usize>(generation: Generation) -> [(u16, Opcode); N] {
    let mut pairs = [(0, Opcode::unnamed(Encoding::Vop3px)); N];
    let (name, rows) = section(Encoding::Vop3px);
    let mut next = 0;
    let mut at = 0;
    while at < rows.len() {
        if rows[at].is_in(generation) {
            pairs[next] = (rows[at].opcode, opcode(&rows[at], name + at, Encoding::Vop3px, generation));
            next += 1;
        }
        at += 1;
    }
    pairs
}
