//! Where a ROCm library may lie.

use std::env;
use std::path::{Path, PathBuf};

/// The default prefix of AMD's own packages.
const DEFAULT_PREFIX: &str = "/opt/rocm";

/// Candidates for `soname`: the system's own search (`LD_LIBRARY_PATH`, `ld.so.cache`), `$ROCM_PATH/lib`, `/opt/rocm/lib`.
pub(super) fn candidates(soname: &str) -> Vec<PathBuf> {
    let prefixes =
        env::var_os("ROCM_PATH").map(PathBuf::from).into_iter().chain([PathBuf::from(DEFAULT_PREFIX)]);
    with_prefixes(soname, prefixes)
}

fn with_prefixes(soname: &str, prefixes: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut candidates = vec![PathBuf::from(soname)];
    for prefix in prefixes {
        let candidate = prefix.join("lib").join(Path::new(soname));
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_search_comes_first_and_no_file_twice() {
        let prefixes = ["/rocm-7", "/opt/rocm", "/opt/rocm"].map(PathBuf::from);
        let expected = ["lib.so.1", "/rocm-7/lib/lib.so.1", "/opt/rocm/lib/lib.so.1"].map(PathBuf::from);
        assert_eq!(with_prefixes("lib.so.1", prefixes.into_iter()), expected);
    }
}
