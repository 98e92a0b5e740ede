#![no_main]
//! Fuzz target `decode`; see `harness.rs`.

use libfuzzer_sys::fuzz_target;

#[path = "../harness.rs"]
#[allow(dead_code, reason = "each target runs its share")]
mod harness;

fuzz_target!(|data: &[u8]| harness::full_decode(data));
