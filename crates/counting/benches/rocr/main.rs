//! What interception and counting cost on the real ROCm runtime above the software GPU.
//!
//! `cargo xtask bench rocr [-- [SECTION...] [DISPATCHES]]`, also `cargo bench -p wavescope-counting --bench rocr`.
//!
//! | section | what is measured |
//! |---|---|
//! | `dispatch` | wall and processor time of a dispatch; batches of 64, the last kernel of each with a signal, at most 3 batches on their way |
//! | `handover` | from the end of a counted kernel to the start of the next on another queue of the agent |
//! | `start` | time and peak memory from `main` to the end of the first dispatch |
//! | `idle` | processor time of a second in which nothing happens, a queue being open |
//!
//! Each measurement is a process of its own; the cases of a section take turns, so that whatever else the machine does
//! hits all of them alike. Numbers of one machine are comparable with each other, not with those of another.
//!
//! The *floor* is a C program on a plain queue that writes the very packets that interception emits.

mod application;
mod case;
mod floor;
mod measure;
#[path = "../enqueue/rig.rs"]
mod rig;
mod sections;
mod stage;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    match case::Case::from_environment() {
        Some(case) => measure::run(&case),
        None => sections::run(),
    }
}
