//! Finding and reading the files of a case: folders searched to the bottom, gzipped files as if they were not.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::paths;

/// Where `ci` finds the cases of a finished kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Below `../shared`: the captured truth, not in every checkout.
    pub(crate) shared: &'static str,
    /// In the repository: a copy, for a plain clone. `None` where the files may not be committed.
    pub(crate) copy: Option<&'static str>,
}

impl Source {
    /// The captured path if present, else the copy, else why there is none.
    pub(crate) fn locate(&self) -> Result<PathBuf, String> {
        if let Some(path) =
            paths::shared().map(|shared| shared.join(self.shared)).filter(|path| path.exists())
        {
            return Ok(path);
        }
        let copy = self.copy.map(|copy| paths::root().join(copy)).filter(|path| path.exists());
        if let Some(copy) = &copy {
            println!(
                "NOT RUN: ../shared/{} is not there; its copy {} is checked",
                self.shared,
                paths::display(copy)
            );
        }
        copy.ok_or_else(|| format!("../shared/{} is not there", self.shared))
    }

    /// For the name of the step.
    pub(crate) fn shown(&self) -> &'static str {
        self.shared
    }
}

/// Every file below `path`, sorted; `path` itself when it is a file.
pub(crate) fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let kind = std::fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if !kind.is_dir() {
            files.push(path);
            continue;
        }
        let entries = std::fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
        for entry in entries {
            open.push(entry.with_context(|| format!("cannot list {}", path.display()))?.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The text of `path`, unpacked where its name ends in `.gz`.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let read = match path.extension().is_some_and(|extension| extension == "gz") {
        true => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        false => (&file).read_to_string(&mut text),
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if text.is_empty() {
        bail!("{} is empty", path.display());
    }
    Ok(text)
}
