//! RDNA: gfx10, gfx11, gfx12 and gfx1250.
//!
//! [`RdnaDecoder`] reads a chunk once. The reading loop is in `read` (a copy per generation, made by the compiler),
//! the order of delivery on gfx10 and gfx11 in `order`, what a token does in `state`.

mod codes;
mod damage;
mod header;
mod layout;
mod order;
mod read;
mod realtime;
mod recent;
mod slots;
mod start;
mod state;
mod wave;

pub(crate) use state::{RdnaDecoder, pipeline_event};
