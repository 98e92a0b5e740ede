//! What applications do to a tool at their beginning and their end, as C programs with a tool that counts (the example
//! `count_waves`), on both faces, the runtime in the process and the real one, and with both techniques.
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

/// Defines tests that hold on both faces and with both techniques.
#[cfg(test)]
macro_rules! on_both_faces {
    ($($(#[$doc:meta])* fn $name:ident($bench:ident) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            use super::*;

            fn check($bench: &Bench) $body

            #[test]
            fn in_process_runtime() {
                check(&Bench::in_process(Technique::Runtime));
            }

            #[test]
            fn in_process_doorbell() {
                check(&Bench::in_process(Technique::Doorbell));
            }

            #[test]
            fn on_rocr_runtime() {
                Bench::on_rocr(Technique::Runtime, check);
            }

            #[test]
            fn on_rocr_doorbell() {
                Bench::on_rocr(Technique::Doorbell, check);
            }
        }
    )* };
}

#[cfg(test)]
use on_both_faces;
