//! What `cargo metadata` says about the members of this workspace: names, dependencies on each other, benches.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{cargo, output};

/// One member package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// Package name, e.g. `wavescope-pm4`.
    pub(crate) name: String,
    /// Member packages that it depends on, dev- and build-dependencies included.
    pub(crate) dependencies: Vec<String>,
    /// Names of its bench targets.
    pub(crate) benches: Vec<String>,
}

/// The member packages.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// In the order of `cargo metadata`.
    pub(crate) packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let text = output(&mut cargo(["metadata", "--format-version", "1", "--no-deps"]))?;
        Self::from_metadata(&serde_json::from_str(&text)?)
    }

    /// Reads the JSON of `cargo metadata --no-deps`.
    pub(crate) fn from_metadata(metadata: &Value) -> Result<Self> {
        let packages = metadata["packages"].as_array().context("cargo metadata has no `packages`")?;
        let names: Vec<_> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
        let packages = packages.iter().map(|package| read_package(package, &names)).collect::<Result<_>>()?;
        Ok(Self { packages })
    }
}

fn read_package(package: &Value, members: &[&str]) -> Result<Package> {
    let name = package["name"].as_str().context("package without a name")?.to_owned();
    let list = |key: &str| package[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let dependencies = list("dependencies")
        .iter()
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|dependency| members.contains(dependency))
        .map(str::to_owned)
        .collect();
    let is_bench =
        |target: &&Value| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "bench"));
    let benches = list("targets")
        .iter()
        .filter(is_bench)
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect();
    Ok(Package { name, dependencies, benches })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_edges_and_benches_are_read() {
        let metadata = json!({ "packages": [
            { "name": "a", "dependencies": [{ "name": "b" }, { "name": "serde" }], "targets": [
                { "name": "decode", "kind": ["bench"] }, { "name": "a", "kind": ["lib"] },
            ] },
            { "name": "b", "dependencies": [], "targets": [] },
        ] });
        let [a, b] = &Workspace::from_metadata(&metadata).unwrap().packages[..] else {
            panic!("two members")
        };
        assert_eq!(
            (a.dependencies.as_slice(), a.benches.as_slice()),
            (&["b".to_owned()][..], &["decode".to_owned()][..])
        );
        assert_eq!((b.name.as_str(), b.dependencies.len()), ("b", 0));
    }

    #[test]
    fn metadata_without_packages_is_refused() {
        assert!(Workspace::from_metadata(&json!({})).is_err());
    }
}
