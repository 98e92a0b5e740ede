//! PM4 packets and registers of AMD GPUs, encoded and decoded.
//!
//! A *command buffer* is a sequence of dwords that the command processor executes. This crate turns such dwords
//! into [`Packet`]s ([`Decoder`]) and packets into dwords ([`Packet::encode`]), knows the registers that the
//! packets name ([`Register`], [`RegisterMap`]) on each chip ([`Target`]), and prints a buffer for people
//! ([`mod@print`]). Performance-counter blocks ([`Block`]) are data, generated from `tables/*.json`.
//!
//! It must not know HSA, queues, or what a packet sequence is for: sequences belong to `wavescope-aql-profile`,
//! their execution to `wavescope-software-gpu`.
//!
//! ```
//! use wavescope_pm4::{Decoder, EventWrite, Packet, SetRegs};
//!
//! let mut dwords = Vec::new();
//! Packet::EventWrite(EventWrite::CS_PARTIAL_FLUSH).encode(&mut dwords);
//! Packet::SetRegs(SetRegs::uconfig(0xC200, &[0xE000_0000])).encode(&mut dwords);
//! assert_eq!(dwords, [0xC000_4600, 0x407, 0xC001_7900, 0x200, 0xE000_0000]);
//!
//! let packets: Vec<_> = Decoder::new(&dwords).collect::<Result<_, _>>()?;
//! assert_eq!(packets[1].offset, 2);
//! # Ok::<(), wavescope_pm4::Error>(())
//! ```
//!
//! Sources: packet layouts are those of the Linux kernel's `amdgpu/soc15d.h` and `nvd.h`, register offsets those
//! of its `include/asic_reg/` headers; both also appear in ROCm/rocm-systems under `projects/aqlprofile/linux`.

mod block;
mod cache;
mod copy_data;
mod decode;
mod encode;
mod error;
mod fields;
mod gfx_index;
mod ip;
mod opcode;
mod packet;
pub mod print;
mod register_map;
mod registers;
mod set_regs;
mod tables;
mod target;
mod wait;

pub use block::{Attributes, Block, BlockId, CounterRegisters, Select};
pub use cache::AcquireMem;
pub use copy_data::{CopyControl, CopyData, CopyDestination, CopySource};
pub use decode::{Decoder, Located};
pub use error::Error;
pub use fields::{Field, register_fields};
pub use gfx_index::GrbmGfxIndex;
pub use ip::{Ip, IpBases, Register};
pub use opcode::Opcode;
pub use packet::{EventWrite, IndirectBuffer, Packet, PredExec, Unknown};
pub use register_map::{CounterPart, RegisterMap, RegisterUse};
pub use registers::{FixedRegister, RegisterName};
pub use set_regs::{RegisterSpace, SetRegs};
pub use target::{Generation, Target};
pub use wait::{WaitFunction, WaitRegMem};
