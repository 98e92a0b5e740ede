//! Length, class and branch target of AMD GPU instructions, and code-object reading.
//!
//! The crate answers three questions, each usable alone:
//!
//! * [`decode`] and [`Instructions`]: how long is the instruction at these bytes, what is it called, which class does
//!   the thread-trace stitcher see in it ([`InstructionClass`]), where does it branch to. Table-driven, without
//!   allocation; an opcode that no table names still has a length and a class, since the chip ran it.
//! * [`CodeObject`]: the load segments, kernels and symbols of an AMD GPU ELF file, with or without program headers,
//!   section headers or metadata.
//! * `comgr` (a feature): full operand text through AMD's comgr library, loaded at run time on request only.
//!
//! It must not know traces: matching instructions with a trace is the decoder's work.
//!
//! How well the tables agree with LLVM's disassembler is counted by two examples. `compare_disassembly` goes over code
//! objects: of the 9.6 million instructions in 189 code objects of Debian's `librocsparse1` 6.4.3 (21 each for gfx900,
//! gfx906, gfx908, gfx90a, gfx1010, gfx1030, gfx1100, gfx1101 and gfx1102; LLVM 22) none differs in length, class or
//! name, and decoding in a line from the first byte meets exactly the places where LLVM begins an instruction.
//! `compare_random_words` makes instructions of every format; those kept in `tests/llvm` are compared by each test run,
//! gfx950, gfx1151, gfx1200 and gfx1250 among them, for which that library holds no code.
//!
//! ```
//! use wavescope_isa::{Instructions, Target, decode};
//!
//! let target: Target = "gfx1100".parse()?;
//! // s_cbranch_scc0 +2; s_nop 0; s_endpgm
//! let code = [0x02, 0, 0xa1, 0xbf, 0, 0, 0x80, 0xbf, 0, 0, 0xb0, 0xbf];
//! let first = decode(target, &code)?;
//! assert_eq!(first.mnemonic(), "s_cbranch_scc0");
//! assert_eq!(first.branch_target(0x1000), Some(0x100c));
//!
//! let last = Instructions::new(target, &code).last();
//! assert!(last.is_some_and(|(offset, found)| offset == 8 && found.is_ok_and(|i| i.ends_program())));
//! # Ok::<(), wavescope_isa::Error>(())
//! ```
#![cfg_attr(not(feature = "comgr"), forbid(unsafe_code))]
#![deny(unsafe_code)]

mod class;
mod code_object;
#[cfg(feature = "comgr")]
#[expect(unsafe_code, reason = "calls a C library that is loaded at run time")]
mod comgr;
mod decode;
mod encoding;
mod error;
#[doc(hidden)]
pub mod harness;
mod instruction;
mod instructions;
mod opcode;
mod tables;
mod target;

pub use class::InstructionClass;
pub use code_object::{CodeObject, Kernel, KernelDescriptor, KernelMetadata, Segment, Symbol};
#[cfg(feature = "comgr")]
pub use comgr::{Comgr, Disassembler};
pub use decode::decode;
pub use encoding::Encoding;
pub use error::Error;
pub use instruction::Instruction;
pub use instructions::Instructions;
pub use target::{Generation, Target};
