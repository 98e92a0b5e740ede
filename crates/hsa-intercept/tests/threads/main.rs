//! The threads of this crate. A program of its own: it looks at all threads of the process.

#[cfg(test)]
mod announced;
