//! A folder of chunks with what a decoder makes of them.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::{find, folders, named, read_text};
use crate::kernel::{Kernel, parse_lines};

/// One golden set.
#[derive(Debug, Clone)]
pub struct Set {
    /// Its folder.
    pub folder: PathBuf,
    /// Family and name, for messages.
    pub name: String,
}

/// One chunk of a set.
#[derive(Debug)]
pub struct Chunk {
    /// File name.
    pub file: String,
    /// Shader engine it comes from.
    pub shader_engine: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The sets two levels below `root` that have a file of this name, gzipped or not.
///
/// # Errors
///
/// A folder cannot be listed.
pub fn sets_below(root: &Path, file: &str) -> io::Result<Vec<Set>> {
    let mut sets = Vec::new();
    for family in folders(root)? {
        sets.extend(folders(&family)?.into_iter().map(Set::in_folder).filter(|set| set.has(file)));
    }
    Ok(sets)
}

impl Set {
    /// The set of a folder, unread.
    pub fn in_folder(folder: PathBuf) -> Set {
        let mut parts: Vec<_> =
            folder.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.reverse();
        Set { name: parts.join("/"), folder }
    }

    /// Whether it has this file, gzipped or not.
    pub fn has(&self, file: &str) -> bool {
        find(&self.folder, file).is_some()
    }

    /// Text of a file of the set, unpacked if need be.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be read.
    pub fn text(&self, file: &str) -> io::Result<String> {
        let path = find(&self.folder, file).ok_or_else(|| named(&self.folder.join(file), "not found"))?;
        read_text(&path)
    }

    /// Bytes of a file of the set.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn bytes(&self, file: &str) -> io::Result<Vec<u8>> {
        let path = self.folder.join(file);
        std::fs::read(&path).map_err(|error| named(&path, error))
    }

    /// All chunks, in the order of the golden.
    ///
    /// # Errors
    ///
    /// `meta.json` or a chunk cannot be read.
    pub fn chunks(&self) -> io::Result<Vec<Chunk>> {
        let meta = self.meta()?;
        list(&meta["chunks"])
            .map(|chunk| {
                let file = self.text_of(chunk, "file")?.to_owned();
                let shader_engine = self.number_of(chunk, "se")? as u32;
                Ok(Chunk { bytes: self.bytes(&file)?, shader_engine, file })
            })
            .collect()
    }

    /// All kernels.
    ///
    /// # Errors
    ///
    /// `meta.json` or a disassembly cannot be read.
    pub fn kernels(&self) -> io::Result<Vec<Kernel>> {
        let meta = self.meta()?;
        list(&meta["kernels"])
            .map(|kernel| {
                let isa = self.text_of(kernel, "isa")?;
                let lines = parse_lines(&self.text(isa)?).ok_or_else(|| self.malformed(isa))?;
                Ok(Kernel {
                    load_address: self.number_of(kernel, "load_address")?,
                    load_size: self.number_of(kernel, "load_size")?,
                    code_object_id: kernel["code_object_id"].as_u64().unwrap_or(1),
                    code_object: kernel["code_object"].as_str().map(|file| self.folder.join(file)),
                    lines,
                })
            })
            .collect()
    }

    fn meta(&self) -> io::Result<Value> {
        let text = self.text("meta.json")?;
        serde_json::from_str(&text).map_err(|error| named(&self.folder.join("meta.json"), error))
    }

    fn text_of<'a>(&self, value: &'a Value, key: &str) -> io::Result<&'a str> {
        value[key].as_str().ok_or_else(|| self.malformed(key))
    }

    fn number_of(&self, value: &Value, key: &str) -> io::Result<u64> {
        value[key].as_u64().ok_or_else(|| self.malformed(key))
    }

    fn malformed(&self, what: &str) -> io::Error {
        named(&self.folder, format!("`{what}` is missing or malformed"))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
