//! Thread trace: parameters, buffers, commands, and what was written.

mod buffers;
mod config;
mod instance;
mod layout;
mod marker;
mod parameter;
mod program;
mod readback;
mod start;
mod stop;
mod userdata;
mod values;

pub use buffers::{BufferPackets, BufferStatus};
pub use config::TraceConfig;
pub use layout::{EngineLayout, TraceLayout};
pub use marker::{CodeObjectMarker, marker_commands};
pub use parameter::TraceParameter;
pub use program::BuiltinTrace;
pub use readback::{EngineData, TraceReadback, read_control};

pub(crate) use marker::BuiltinMarker;
