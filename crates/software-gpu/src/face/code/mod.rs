//! Code objects: readers, executables, loading, symbols.
//!
//! A *reader* is a code object as the application has it, in memory or in a file. An *executable* collects *loaded code
//! objects*: copies in memory that the device reads, relocated, each on one agent. A *symbol* is a kernel or a
//! variable of one of them.

mod executable;
mod image;
mod reader;
mod registry;
mod uri;

pub(super) use executable::{Loaded, Symbol, SymbolKind};
pub(super) use reader::Reader;
pub(super) use registry::CodeObjects;
