//! Finds golden sets: those beside the repository where they exist, the copies in `tests/data` always.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One folder of chunks with what a decoder makes of them.
pub struct Set {
    pub folder: PathBuf,
    pub name: String,
}

/// All sets at hand that have the named file (also gzipped).
pub fn sets_with(file: &str) -> Vec<Set> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = manifest.join("../../../shared/fixtures/sqtt");
    if !beside.is_dir() {
        println!("NOT RUN: golden sets beside the repository, {} is absent", beside.display());
    }
    let mut sets = Vec::new();
    for root in [beside, manifest.join("tests/data")] {
        for family in folders(&root) {
            for folder in folders(&family) {
                if path_of(&folder, file).is_some() {
                    let name = folder.strip_prefix(&root).unwrap().display().to_string();
                    sets.push(Set { folder, name });
                }
            }
        }
    }
    assert!(!sets.is_empty(), "not even the sets in tests/data were found");
    sets
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn path_of(folder: &Path, file: &str) -> Option<PathBuf> {
    [folder.join(file), folder.join(format!("{file}.gz"))].into_iter().find(|path| path.is_file())
}

impl Set {
    /// Text of a file of the set, gunzipped if need be.
    pub fn text(&self, file: &str) -> Option<String> {
        let path = path_of(&self.folder, file)?;
        let mut text = String::new();
        let raw = File::open(&path).unwrap();
        if path.extension().is_some_and(|ext| ext == "gz") {
            flate2::read::MultiGzDecoder::new(raw).read_to_string(&mut text).unwrap();
        } else {
            { raw }.read_to_string(&mut text).unwrap();
        }
        Some(text)
    }

    /// Bytes of a chunk.
    pub fn chunk(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(file)).unwrap()
    }
}
