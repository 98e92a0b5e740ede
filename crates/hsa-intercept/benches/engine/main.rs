//! What interception costs without a runtime: the write hook on the submitting thread, and the thread that sees dispatches
//! retire.

mod hook;
mod retirement;
mod rig;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    hook::hook(&mut criterion);
    retirement::retirement(&mut criterion);
    criterion.final_summary();
}
