//! What each packet does.

use std::sync::atomic::Ordering;

use wavescope_software_gpu::Access;

use super::memory::{Fault, Memory};
use super::packet::{Atomic, Condition, CopyBox, Packet, Pattern, Value, Volume};
use crate::driver::clock;
use crate::events;

/// How a packet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is done.
    Done,
    /// Memory has to change first.
    Waiting,
}

/// Executes a packet, all of it or, while it waits, nothing.
pub(super) fn execute(packet: &Packet, memory: &Memory) -> Result<Outcome, Fault> {
    match *packet {
        Packet::Nothing => {}
        Packet::Copy { from, to, also_to, bytes } => {
            std::iter::once(to).chain(also_to).try_for_each(|to| memory.copy(from, to, bytes))?;
        }
        Packet::Swap { a, b, bytes } => memory.swap(a, b, bytes)?,
        Packet::CopyBox(ref copy) => copy_box(copy, memory)?,
        Packet::Write { to, ref dwords } => memory.write(to, dwords)?,
        Packet::Fence { to, value } => store(memory, to, value)?,
        // The event may be gone by now; the kernel drops such an interrupt, too.
        Packet::Trap { event } => drop(events::set(event)),
        Packet::Poll { at, mask, condition, reference } => {
            return poll(memory, at, mask, condition, reference);
        }
        Packet::Atomic { at, operation, source, compare, until_equal } => {
            let equal = atomic(memory, at, operation, source, compare)?;
            if until_equal && !equal {
                return Ok(Outcome::Waiting);
            }
        }
        Packet::Fill { to, bytes, pattern } => fill(memory, to, bytes, pattern)?,
        Packet::Timestamp { to } => store(memory, to, Value::Quad(clock::gpu_ticks()))?,
    }
    Ok(Outcome::Done)
}

/// Stores so that whoever sees the value sees what was done before.
fn store(memory: &Memory, to: u64, value: Value) -> Result<(), Fault> {
    match value {
        Value::Dword(value) => memory.dword(to, Access::Write)?.store(value, Ordering::Release),
        Value::Quad(value) => memory.quad(to, Access::Write)?.store(value, Ordering::Release),
    }
    Ok(())
}

fn fill(memory: &Memory, to: u64, bytes: u64, pattern: Pattern) -> Result<(), Fault> {
    match pattern {
        Pattern::Byte(byte) => memory.fill(to, bytes, [byte]),
        Pattern::Word(word) => memory.fill(to, bytes, word.to_le_bytes()),
        Pattern::Dword(dword) => memory.fill(to, bytes, dword.to_le_bytes()),
    }
}

fn poll(
    memory: &Memory,
    at: u64,
    mask: u64,
    condition: Condition,
    reference: Value,
) -> Result<Outcome, Fault> {
    let (value, reference) = match reference {
        Value::Dword(reference) => {
            (u64::from(memory.dword(at, Access::Read)?.load(Ordering::Acquire)), u64::from(reference))
        }
        Value::Quad(reference) => (memory.quad(at, Access::Read)?.load(Ordering::Acquire), reference),
    };
    let value = value & mask;
    let met = match condition {
        Condition::Always => true,
        Condition::Less => value < reference,
        Condition::LessOrEqual => value <= reference,
        Condition::Equal => value == reference,
        Condition::NotEqual => value != reference,
        Condition::GreaterOrEqual => value >= reference,
        Condition::Greater => value > reference,
    };
    Ok(if met { Outcome::Done } else { Outcome::Waiting })
}

/// Performs the operation; returns whether memory was equal to `compare` before.
fn atomic(memory: &Memory, at: u64, operation: Atomic, source: Value, compare: u64) -> Result<bool, Fault> {
    // One text for both widths: the standard library's atomics share their methods, but no trait.
    macro_rules! perform {
        ($word:expr, $source:expr, $compare:expr, $signed:ty) => {{
            let (word, source, compare) = ($word, $source, $compare);
            let signed = |choose: fn($signed, $signed) -> $signed| {
                word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                    Some(choose(now.cast_signed(), source.cast_signed()).cast_unsigned())
                })
                .unwrap_or_else(|now| now)
            };
            let before = match operation {
                Atomic::Swap => word.swap(source, Ordering::AcqRel),
                Atomic::CompareSwap => word
                    .compare_exchange(compare, source, Ordering::AcqRel, Ordering::Acquire)
                    .unwrap_or_else(|now| now),
                Atomic::Add => word.fetch_add(source, Ordering::AcqRel),
                Atomic::Subtract => word.fetch_sub(source, Ordering::AcqRel),
                Atomic::SignedMinimum => signed(<$signed>::min),
                Atomic::Minimum => word.fetch_min(source, Ordering::AcqRel),
                Atomic::SignedMaximum => signed(<$signed>::max),
                Atomic::Maximum => word.fetch_max(source, Ordering::AcqRel),
                Atomic::And => word.fetch_and(source, Ordering::AcqRel),
                Atomic::Or => word.fetch_or(source, Ordering::AcqRel),
                Atomic::Xor => word.fetch_xor(source, Ordering::AcqRel),
            };
            before == compare
        }};
    }
    Ok(match source {
        Value::Dword(source) => perform!(memory.dword(at, Access::Write)?, source, compare as u32, i32),
        Value::Quad(source) => perform!(memory.quad(at, Access::Write)?, source, compare, i64),
    })
}

fn copy_box(copy: &CopyBox, memory: &Memory) -> Result<(), Fault> {
    let CopyBox { from, to, extent: [x, y, z], element } = copy;
    for slice in 0..*z {
        for row in 0..*y {
            let at = |volume: &Volume| row_address(volume, row, slice, *element);
            memory.copy(at(from), at(to), x << element)?;
        }
    }
    Ok(())
}

fn row_address(volume: &Volume, row: u64, slice: u64, element: u32) -> u64 {
    let [x, y, z] = volume.start;
    let elements = x + (y + row) * volume.pitch + (z + slice) * volume.slice;
    volume.base.wrapping_add(elements << element)
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;
