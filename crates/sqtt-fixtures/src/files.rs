//! Where sets lie, and files that may be gzipped.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The captured sets beside the repository that holds `manifest_dir` (a package two levels below its root). `None`
/// where a checkout has none.
pub fn shared_sets(manifest_dir: &str) -> Option<PathBuf> {
    let sets = Path::new(manifest_dir).join("../../../shared/fixtures/sqtt");
    sets.is_dir().then_some(sets)
}

/// The file of this name in a folder, or the one with `.gz` behind it.
pub(crate) fn find(folder: &Path, file: &str) -> Option<PathBuf> {
    [folder.join(file), folder.join(format!("{file}.gz"))].into_iter().find(|path| path.is_file())
}

/// The text of a file, unpacked where its name ends in `.gz`.
///
/// # Errors
///
/// It cannot be read or is no text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path).map_err(|error| named(path, error))?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// The error with the path in its text.
pub(crate) fn named(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// Folders in a folder, sorted.
pub(crate) fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(|error| named(root, error))? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
