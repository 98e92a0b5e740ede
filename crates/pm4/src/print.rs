//! Command buffers as text for people: one packet a line, with register and field names.
//!
//! ```
//! use wavescope_pm4::{RegisterMap, Target, print};
//!
//! let map = RegisterMap::with_fixed_bases(Target::Gfx90a);
//! let dwords = print::dwords_from_hex("c0017900 00000200 e0000000")?;
//! let text = print::CommandBuffer::new(&map, &dwords).to_string();
//! assert!(text.starts_with("   0 SET_UCONFIG_REG GRBM_GFX_INDEX[0c200] = e0000000"));
//! # Ok::<(), print::NotHex>(())
//! ```

use std::fmt;

use crate::copy_data::{CopyData, CopyDestination, CopySource};
use crate::decode::{Decoder, Located};
use crate::fields::register_fields;
use crate::gfx_index::GrbmGfxIndex;
use crate::packet::{EventWrite, Packet, Unknown};
use crate::register_map::{CounterPart, RegisterMap};
use crate::registers::RegisterName;
use crate::wait::{WaitFunction, WaitRegMem};

/// A command buffer that prints as text. Malformed packets become lines of their own and end nothing.
#[derive(Clone, Copy, Debug)]
pub struct CommandBuffer<'a> {
    map: &'a RegisterMap,
    dwords: &'a [u32],
}

impl<'a> CommandBuffer<'a> {
    /// The buffer `dwords` of the chip that `map` is of.
    pub const fn new(map: &'a RegisterMap, dwords: &'a [u32]) -> Self {
        Self { map, dwords }
    }
}

impl fmt::Display for CommandBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut conditional_until = 0;
        for item in Decoder::new(self.dwords) {
            match item {
                Ok(located) => {
                    let indent = if located.offset < conditional_until { "  " } else { "" };
                    write!(f, "{:4} {indent}", located.offset)?;
                    packet(f, self.map, &located)?;
                    f.write_str("\n")?;
                    if let Packet::PredExec(predicate) = located.packet {
                        conditional_until = located.offset + 2 + predicate.dwords() as usize;
                    }
                }
                Err(error) => writeln!(f, "{:4} malformed: {error}", error.offset())?,
            }
        }
        Ok(())
    }
}

fn packet(f: &mut fmt::Formatter<'_>, map: &RegisterMap, located: &Located<'_>) -> fmt::Result {
    write!(f, "{}", located.packet.opcode())?;
    match located.packet {
        Packet::SetRegs(set) => {
            for (address, value) in set.writes() {
                write!(f, " {} = {value:08x}", Named(map, u64::from(address)))?;
                fields(f, map, address, value)?;
            }
            Ok(())
        }
        Packet::EventWrite(event) => event_write(f, event),
        Packet::CopyData(copy) => copy_data(f, map, copy),
        Packet::AcquireMem(acquire) => {
            write!(f, " {:#x} +{:#x}", acquire.address(), acquire.bytes())?;
            match acquire.gcr_cntl {
                Some(gcr) => write!(f, " GCR_CNTL={gcr:08x}")?,
                None => write!(f, " CP_COHER_CNTL={:08x}", acquire.coher_cntl)?,
            }
            write!(f, " POLL_INTERVAL={}", acquire.poll_interval)
        }
        Packet::WaitRegMem(wait) => wait_reg_mem(f, map, wait),
        Packet::PredExec(predicate) => {
            write!(f, " XCC_MASK={:02x}, next {} dwords", predicate.xcc_mask(), predicate.dwords())
        }
        Packet::IndirectBuffer(buffer) => {
            let valid = if buffer.is_valid() { "" } else { ", not VALID" };
            write!(f, " {:#x}, {} dwords{valid}", buffer.address, buffer.dwords())
        }
        Packet::Unknown(Unknown { body, .. }) => body.iter().try_for_each(|dword| write!(f, " {dword:08x}")),
    }
}

/// A register as `NAME[address]`, with the die of one that lies on another die of a gfx9 package.
struct Named<'a>(&'a RegisterMap, u64);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(map, address) = *self;
        let local = if address >> 32 != 0 { (address & 0x3FFF_FFFF) as u32 } else { address as u32 };
        let name = map.name(local).unwrap_or_else(|| "?".to_owned());
        write!(f, "{name}[{local:05x}]")?;
        if address >> 32 != 0 { write!(f, "@die{}", address >> 30 & 3) } else { Ok(()) }
    }
}

fn fields(f: &mut fmt::Formatter<'_>, map: &RegisterMap, address: u32, value: u32) -> fmt::Result {
    match map.fixed(address) {
        Some(RegisterName::GrbmGfxIndex) => gfx_index(f, map, value),
        Some(name) => {
            for field in register_fields(map.generation(), name) {
                let found = field.of(value);
                if found != 0 {
                    write!(f, " {}={found:#x}", field.name)?;
                }
            }
            Ok(())
        }
        None => match map.counter(address) {
            Some(used) if used.part == CounterPart::Select && used.block.select.event_mask != 0 => {
                write!(f, " PERF_SEL={}", value & used.block.select.event_mask)
            }
            _ => Ok(()),
        },
    }
}

fn gfx_index(f: &mut fmt::Formatter<'_>, map: &RegisterMap, value: u32) -> fmt::Result {
    let index = GrbmGfxIndex::decode(map.generation(), value);
    for (name, chosen) in [("SE", index.se), ("SA", index.sa), ("INSTANCE", index.instance)] {
        match chosen {
            Some(number) => write!(f, " {name}={number}")?,
            None => write!(f, " {name}=*")?,
        }
    }
    Ok(())
}

fn event_write(f: &mut fmt::Formatter<'_>, event: EventWrite) -> fmt::Result {
    let name = match event {
        EventWrite::CS_PARTIAL_FLUSH => " CS_PARTIAL_FLUSH",
        EventWrite::THREAD_TRACE_FINISH => " THREAD_TRACE_FINISH",
        _ => "",
    };
    write!(f, " {:08x}{name} TYPE={:#x} INDEX={}", event.0, event.event_type(), event.event_index())
}

fn copy_data(f: &mut fmt::Formatter<'_>, map: &RegisterMap, copy: CopyData) -> fmt::Result {
    let CopyData { control, source, destination } = copy;
    write!(f, " ctl={:08x} ", control.0)?;
    match control.source() {
        from if from.is_register() => write!(f, "reg {}", Named(map, source))?,
        CopySource::MEMORY => write!(f, "mem {source:#x}")?,
        CopySource::L2 => write!(f, "l2 {source:#x}")?,
        CopySource::IMMEDIATE => write!(f, "imm {source:08x}")?,
        CopySource::GPU_CLOCK => f.write_str("gpu clock")?,
        other => write!(f, "source {} {source:#x}", other.0)?,
    }
    match control.destination() {
        to if to.is_register() => write!(f, " -> reg {}", Named(map, destination))?,
        CopyDestination::L2 => write!(f, " -> l2 {destination:#x}")?,
        CopyDestination::MEMORY => write!(f, " -> mem {destination:#x}")?,
        other => write!(f, " -> destination {} {destination:#x}", other.0)?,
    }
    let width = if control.bytes() == 8 { ", 64 bits" } else { "" };
    let confirm = if control.confirm() { ", confirmed" } else { "" };
    write!(f, "{width}{confirm}")?;
    if control.source() == CopySource::IMMEDIATE && control.destination().is_register() {
        fields(f, map, destination as u32, source as u32)?;
    }
    Ok(())
}

fn wait_reg_mem(f: &mut fmt::Formatter<'_>, map: &RegisterMap, wait: WaitRegMem) -> fmt::Result {
    let operation = match wait.function() {
        WaitFunction::EQUAL => "==".to_owned(),
        WaitFunction::NOT_EQUAL => "!=".to_owned(),
        other => format!("function {}", other.0),
    };
    if wait.is_memory() {
        write!(f, " mem {:#x}", wait.address)?;
    } else {
        write!(f, " reg {}", Named(map, wait.address))?;
    }
    write!(f, " & {:08x} {operation} {:08x} POLL_INTERVAL={}", wait.mask, wait.reference, wait.poll_interval)
}

/// Text that is not a run of 8-digit hexadecimal dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("character {position} ({found:?}) does not belong to a run of 8-digit hexadecimal dwords")]
pub struct NotHex {
    /// Index of the character.
    pub position: usize,
    /// What stands there; a space at the end of text that stops inside a dword.
    pub found: char,
}

/// Reads dwords written as hexadecimal digits, most significant first, eight each; white space between them is
/// optional, and a `0x` before one is allowed.
///
/// # Errors
/// [`NotHex`] at the first character that does not fit, or at the end when digits are missing.
pub fn dwords_from_hex(text: &str) -> Result<Vec<u32>, NotHex> {
    let (mut dwords, mut value, mut digits) = (Vec::new(), 0u32, 0);
    let text = text.replace("0x", "  ");
    for (position, found) in text.chars().enumerate() {
        match found.to_digit(16) {
            Some(digit) => {
                value = value << 4 | digit;
                digits += 1;
            }
            None if found.is_whitespace() && digits == 0 => {}
            None => return Err(NotHex { position, found }),
        }
        if digits == 8 {
            dwords.push(value);
            (value, digits) = (0, 0);
        }
    }
    if digits == 0 { Ok(dwords) } else { Err(NotHex { position: text.chars().count(), found: ' ' }) }
}

/// Reads little-endian dwords, as a command buffer lies in memory; up to three bytes at the end are dropped.
pub fn dwords_from_bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect()
}
