//! Whether a library that cargo once made was made from this checkout's sources as they are now.
//!
//! Cargo lists the sources in a file beside the library. Asking cargo itself takes a second and waits for other builds, and
//! would not do: where two checkouts share a target folder, cargo takes one's library for the other's if only its time is
//! right, and then lists the other's sources beside it (cargo 1.95).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a library is to a checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Made from the sources as they are.
    Fresh,
    /// Not there, or one of its sources has changed or gone since.
    Stale,
    /// Made from another checkout's sources.
    Foreign,
}

impl Origin {
    /// Of `library` to the checkout in `workspace`; sources in `output` are what build scripts wrote.
    pub(crate) fn of(library: &Path, workspace: &Path, output: &Path) -> Self {
        let Ok(list) = std::fs::read_to_string(library.with_extension("d")) else { return Self::Stale };
        let sources = sources(&list);
        let is_ours = |source: &PathBuf| is_within(source, workspace) || is_within(source, output);
        if !sources.iter().all(is_ours) {
            return Self::Foreign;
        }
        let built = time(library);
        let is_older = |source: &PathBuf| time(source).is_some_and(|changed| Some(changed) < built);
        if !sources.is_empty() && sources.iter().all(is_older) { Self::Fresh } else { Self::Stale }
    }
}

fn time(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// By name, or by where links lead.
fn is_within(file: &Path, folder: &Path) -> bool {
    let real = || Some(file.canonicalize().ok()?.starts_with(folder.canonicalize().ok()?));
    file.starts_with(folder) || real() == Some(true)
}

/// What stands behind the colon of each line, as for `make`: blanks within a name have a backslash before them.
fn sources(list: &str) -> Vec<PathBuf> {
    let names = list.lines().filter_map(|line| line.split_once(": ")).map(|(_, names)| names);
    names.flat_map(words).collect()
}

fn words(line: &str) -> Vec<PathBuf> {
    let mut words = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let next = match character {
            ' ' => {
                words.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            plain => plain,
        };
        if let Some(word) = words.last_mut() {
            word.push(next);
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A checkout and a target folder beside another checkout, in a folder with a blank in its name.
    struct Folders(tempfile::TempDir);

    impl Folders {
        fn new() -> Self {
            let folder = tempfile::Builder::new().prefix("on rocr ").tempdir().unwrap();
            for name in ["here", "there", "target"] {
                std::fs::create_dir(folder.path().join(name)).unwrap();
            }
            Self(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Makes a file that was last changed so many seconds ago.
        fn touch(&self, name: &str, seconds: u64) {
            let time = SystemTime::now() - Duration::from_secs(seconds);
            let file = std::fs::File::options().append(true).create(true).open(self.path(name)).unwrap();
            file.set_modified(time).unwrap();
        }

        fn list(&self, sources: &[&str]) {
            let escaped = |name: &&str| self.path(name).display().to_string().replace(' ', "\\ ");
            let sources: Vec<_> = sources.iter().map(escaped).collect();
            let list = format!("{}: {}\n", escaped(&"target/lib.so"), sources.join(" "));
            std::fs::write(self.path("target/lib.d"), list).unwrap();
        }

        fn origin(&self) -> Origin {
            Origin::of(&self.path("target/lib.so"), &self.path("here"), &self.path("target"))
        }
    }

    #[test]
    fn library_is_fresh_until_one_of_its_sources_changes_or_goes() {
        let folders = Folders::new();
        assert_eq!(folders.origin(), Origin::Stale, "nothing there");
        ["here/a.rs", "here/b.rs", "target/tables.rs"].iter().for_each(|name| folders.touch(name, 20));
        folders.list(&["here/a.rs", "here/b.rs", "target/tables.rs"]);
        assert_eq!(folders.origin(), Origin::Stale, "only the list is there");
        folders.touch("target/lib.so", 10);
        assert_eq!(folders.origin(), Origin::Fresh);
        folders.touch("here/b.rs", 5);
        assert_eq!(folders.origin(), Origin::Stale);
        folders.touch("here/b.rs", 20);
        std::fs::remove_file(folders.path("here/a.rs")).unwrap();
        assert_eq!(folders.origin(), Origin::Stale);
        folders.list(&[]);
        assert_eq!(folders.origin(), Origin::Stale, "made from nothing");
    }

    #[test]
    fn library_of_another_checkout_is_foreign_whether_that_is_still_there_or_not() {
        let folders = Folders::new();
        ["here/a.rs", "there/a.rs"].iter().for_each(|name| folders.touch(name, 20));
        folders.touch("target/lib.so", 10);
        folders.list(&["here/a.rs", "there/a.rs"]);
        assert_eq!(folders.origin(), Origin::Foreign);
        folders.list(&["there/gone.rs"]);
        assert_eq!(folders.origin(), Origin::Foreign);
        folders.list(&["here/a.rs"]);
        assert_eq!(folders.origin(), Origin::Fresh);
    }

    #[test]
    fn checkout_may_be_reached_by_a_link() {
        let folders = Folders::new();
        folders.touch("here/a.rs", 20);
        folders.touch("target/lib.so", 10);
        std::os::unix::fs::symlink(folders.path("here"), folders.path("link")).unwrap();
        folders.list(&["link/a.rs"]);
        assert_eq!(folders.origin(), Origin::Fresh);
    }
}
