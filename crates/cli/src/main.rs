//! Count and trace AMD GPU kernels, decode thread traces
fn main() {}
