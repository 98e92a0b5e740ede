//! Where things lie: the workspace root and the facts folder beside it.

use std::path::{Path, PathBuf};

/// The workspace root: the parent of this package's own folder.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// `../shared`, the facts and captured fixtures, where a checkout has them.
pub(crate) fn shared() -> Option<PathBuf> {
    let shared = root().parent()?.join("shared");
    shared.is_dir().then_some(shared)
}

/// A path as it is shown to people: relative to the workspace root where it lies below it.
pub(crate) fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
