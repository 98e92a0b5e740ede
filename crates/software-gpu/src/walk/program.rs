//! Code, decoded as waves come to it.

use std::collections::HashMap;
use std::ops::Index;

use wavescope_isa::{CodeObject, Instruction, Target, decode};

use super::codes;
use super::path::Stop;
use super::scalar::{self, Operation};
use super::work::Work;

/// The longest instruction.
pub(super) const MAX_BYTES: usize = 20;
/// So many zeros in a row are no program.
const BLANK_BYTES: usize = 16;

/// Where code comes from.
pub trait Code {
    /// Copies what can be read from `address` on, at most as much as fits; returns the number of bytes.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// Whether exactly these bytes are at `address`.
    fn holds(&self, address: u64, bytes: &[u8]) -> bool {
        let mut there = [0; 64];
        let chunks = (0..).step_by(there.len()).zip(bytes.chunks(there.len()));
        chunks.into_iter().all(|(offset, chunk)| {
            let there = &mut there[..chunk.len()];
            self.read(address + offset, there) == chunk.len() && *there == *chunk
        })
    }
}

impl<F: Fn(u64, &mut [u8]) -> usize> Code for F {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self(address, into)
    }
}

/// A code object, as it lies in memory when loaded at an address.
impl Code for (u64, &CodeObject<'_>) {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let bytes = address.checked_sub(self.0).and_then(|vaddr| self.1.bytes_at(vaddr)).unwrap_or(&[]);
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        count
    }
}

/// Number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineId(u32);

/// One instruction of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) pc: u64,
    pub(super) instruction: Instruction,
    pub(super) work: Work,
    /// What it does to scalar registers, as far as program counters come from there.
    pub(super) scalar: Option<Operation>,
    pub(super) next: Option<LineId>,
    pub(super) target: Option<LineId>,
}

impl Line {
    pub(super) const fn next_pc(&self) -> u64 {
        self.pc.wrapping_add(self.instruction.size() as u64)
    }

    /// Target of a relative branch; meaningless for anything else.
    pub(super) fn target_pc(&self) -> u64 {
        self.instruction.branch_target(self.pc).unwrap_or(self.pc)
    }
}

/// The instructions of a program that waves have come to.
#[derive(Debug)]
pub struct Program {
    target: Target,
    lines: Vec<Line>,
    places: HashMap<u64, LineId>,
    /// What was read.
    runs: Vec<Run>,
}

/// Bytes that were read, one instruction after the other.
#[derive(Debug)]
struct Run {
    address: u64,
    bytes: Vec<u8>,
}

impl Index<LineId> for Program {
    type Output = Line;

    fn index(&self, id: LineId) -> &Line {
        &self.lines[id.0 as usize]
    }
}

impl Program {
    /// A program for this target, nothing of it read yet.
    pub fn new(target: Target) -> Self {
        Self { target, lines: Vec::new(), places: HashMap::new(), runs: Vec::new() }
    }

    /// Whether memory still holds every instruction that was read.
    pub(crate) fn is_in(&self, code: &dyn Code) -> bool {
        self.runs.iter().all(|run| code.holds(run.address, &run.bytes))
    }

    /// The line at an address, decoded if need be.
    pub(super) fn line(&mut self, pc: u64, code: &dyn Code) -> Result<LineId, Stop> {
        if let Some(&known) = self.places.get(&pc) {
            return Ok(known);
        }
        let mut bytes = [0; MAX_BYTES];
        let available = code.read(pc, &mut bytes);
        let bytes_read = &bytes[..available];
        if available < 4 {
            return Err(Stop::Unmapped);
        }
        if available >= BLANK_BYTES && bytes[..BLANK_BYTES] == [0; BLANK_BYTES] {
            return Err(Stop::Blank);
        }
        let instruction = decode(self.target, bytes_read).map_err(|_| Stop::Unsized)?;
        let work = codes::work(self.target.generation(), instruction, &bytes);
        let scalar = scalar::operation(self.target.generation(), instruction, &bytes);
        let id = LineId(self.lines.len() as u32);
        self.lines.push(Line { pc, instruction, work, scalar, next: None, target: None });
        self.remember(pc, &bytes[..instruction.size()]);
        self.places.insert(pc, id);
        Ok(id)
    }

    fn remember(&mut self, pc: u64, bytes: &[u8]) {
        match self.runs.last_mut() {
            Some(run) if run.address.wrapping_add(run.bytes.len() as u64) == pc => {
                run.bytes.extend_from_slice(bytes);
            }
            _ => self.runs.push(Run { address: pc, bytes: bytes.to_vec() }),
        }
    }

    pub(super) fn link_next(&mut self, from: LineId, to: LineId) {
        self.lines[from.0 as usize].next = Some(to);
    }

    pub(super) fn link_target(&mut self, from: LineId, to: LineId) {
        self.lines[from.0 as usize].target = Some(to);
    }
}
