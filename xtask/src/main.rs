//! Project chores: ci, codegen, goldens, loom, benches
fn main() {}
