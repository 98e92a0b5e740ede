//! What applications do to a tool at their beginning and their end, as C programs with a tool that counts (the example
//! `count_waves`), on both faces: the runtime in the process, and the real one.
//!
//! A program is judged by how it ends, within a time limit, and by what the tool wrote.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod forks;
#[cfg(test)]
mod loads;
#[cfg(test)]
mod signals;

/// Defines tests that hold on both faces.
#[cfg(test)]
macro_rules! on_both_faces {
    ($($(#[$doc:meta])* fn $name:ident($bench:ident) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            use super::*;

            fn check($bench: &Bench) $body

            #[test]
            fn in_process() {
                check(&Bench::new(Face::InProcess).unwrap());
            }

            #[test]
            fn on_rocr() {
                if let Some(bench) = Bench::new(Face::OnRocr) {
                    check(&bench);
                }
            }
        }
    )* };
}

#[cfg(test)]
use on_both_faces;
