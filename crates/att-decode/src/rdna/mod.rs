//! RDNA: gfx10, gfx11, gfx12 and gfx1250.
//!
//! [`RdnaDecoder`] reads a chunk once. The fast loop is in `read` (a copy per generation, made by the compiler), the
//! careful step for what it leaves over in `careful`, the end of a chunk in `tail`. The order of delivery on gfx10 and
//! gfx11 is in `order`, what a token does in `state`.

mod careful;
mod codes;
mod damage;
mod form;
mod header;
mod layout;
mod order;
mod read;
mod realtime;
mod recent;
mod slots;
mod start;
mod state;
mod tail;
#[cfg(test)]
mod tests;
mod wave;

pub(crate) use state::{RdnaDecoder, pipeline_event};
