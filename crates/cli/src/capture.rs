//! One file of a capture: its bytes, the shader engine in its name, and what is wrong with it.

use std::path::{Path, PathBuf};

use wavescope_att_decode::{Error, Generation};
use wavescope_isa::Target;

use crate::input::read_file;

/// Hardware writes the trace in units of this many bytes (the unit of `SQ_THREAD_TRACE_WPTR`).
const UNIT_BYTES: usize = 32;

/// One chunk as read from a file.
#[derive(Debug)]
pub(crate) struct Capture {
    path: PathBuf,
    /// File name without folders.
    pub(crate) name: String,
    /// From the name (`..._se3.sqtt`, `..._shader_engine_3_...`), else 0.
    pub(crate) shader_engine: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Capture {
    /// Reads the file.
    ///
    /// # Errors
    /// Bad input, naming the file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = read_file(path)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { path: path.to_owned(), shader_engine: shader_engine(&name).unwrap_or(0), name, bytes })
    }

    /// What is wrong with the file, in one line with file and offset. `result` is what decoding it said.
    pub(crate) fn fault(&self, result: Result<(), Error>) -> Option<String> {
        let file = self.path.display();
        if let Err(error) = result {
            return Some(format!("{file}: offset {}: {error}", offset_of(error)));
        }
        let generation = Generation::of_chunk(&self.bytes).ok()?;
        let header = if generation == Generation::Gfx9 { Generation::HEADER_BYTES } else { 0 };
        let beyond = (self.bytes.len() - header) % UNIT_BYTES;
        (beyond != 0).then(|| {
            let offset = self.bytes.len() - beyond;
            format!("{file}: offset {offset}: truncated capture: the last {UNIT_BYTES}-byte unit has {beyond} bytes")
        })
    }

    /// Whether `target` wrote another format than this file holds, in one line.
    pub(crate) fn mismatch(&self, target: Target) -> Option<String> {
        let generation = Generation::of_chunk(&self.bytes).ok()?;
        (!belongs_to(target, generation)).then(|| {
            let file = self.path.display();
            format!("{file}: offset 0: no {target} writes a {generation:?} trace; check --gfx")
        })
    }
}

fn offset_of(error: Error) -> u64 {
    match error {
        Error::WaveSlot { byte_offset, .. } | Error::StaleIssue { byte_offset, .. } => byte_offset,
        _ => 0,
    }
}

fn belongs_to(target: Target, generation: Generation) -> bool {
    let is_gfx1250 = target.generation() == wavescope_isa::Generation::Gfx1250;
    u32::from(target.generation().gfxip()) == generation.gfxip()
        && is_gfx1250 == (generation == Generation::Gfx1250)
}

/// The number behind the last `se` or `shader_engine` of a file name.
fn shader_engine(name: &str) -> Option<u32> {
    ["shader_engine_", "_se"].iter().find_map(|tag| {
        let digits = name.rsplit_once(tag)?.1;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shader_engine_is_read_from_the_name() {
        assert_eq!(shader_engine("k0_x1_se12.sqtt"), Some(12));
        assert_eq!(shader_engine("4711_0_shader_engine_3_7.att"), Some(3));
        assert_eq!(shader_engine("trace.bin"), None);
        assert_eq!(shader_engine("my_sequence.bin"), None);
    }
}
