//! The dependency edges that the design forbids: a crate may only use lower layers (ARCHITECTURE.md, "Rooms").
//!
//! That table says the layer of each member. An edge upwards is wrong; an edge within a layer is wrong
//! unless [`SIBLINGS`] names it with a reason; [`FORBIDDEN`] are edges that the layers alone would allow.

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// The rooms as people read them: the layer of each package is its row's first cell.
const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// Edges within one layer that are meant: (from, to, why).
const SIBLINGS: &[(&str, &str, &str)] = &[
    ("wavescope-hsa", "wavescope-core", "handles over the saved table speak in the core's ids"),
    ("wavescope-software-hsa", "wavescope-software-gpu", "C symbols over its in-process face"),
    ("wavescope-software-kfd", "wavescope-software-gpu", "a face of the same GPU, below the real runtime"),
];

/// Edges that no layer rule catches: (from, to, why).
const FORBIDDEN: &[(&str, &str, &str)] = &[
    (
        "wavescope-software-gpu",
        "wavescope-aql-profile",
        "the model judges packet programs, so it shares no code with their builder",
    ),
    (
        "wavescope-software-gpu",
        "wavescope-att-decode",
        "the model's encoder judges the decoder, so they share no code",
    ),
    ("wavescope-att-decode", "hsa-sys", "the decoder turns bytes into events, without HSA"),
    ("wavescope-att-decode", "wavescope-core", "the decoder turns bytes into events, without capture"),
    ("wavescope-core", "hsa-sys", "the core makes no HSA calls"),
    ("wavescope-aql-profile", "wavescope-isa", "packets know nothing of instructions"),
];

/// Loads the workspace and fails with every wrong edge.
pub(crate) fn check() -> Result<()> {
    let workspace = Workspace::load()?;
    let wrong = wrong_edges(&workspace);
    for line in &wrong {
        println!("{line}");
    }
    match wrong.len() {
        0 => Ok(()),
        count => bail!("{count} wrong dependency edges"),
    }
}

/// One line for each edge or package that breaks a rule.
fn wrong_edges(workspace: &Workspace) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in &workspace.packages {
        if layer(&package.name).is_none() {
            wrong.push(format!("{} has no layer: give it a row in ARCHITECTURE.md, \"Rooms\"", package.name));
        }
        wrong.extend(package.dependencies.iter().filter_map(|to| fault(&package.name, to)));
    }
    wrong
}

fn fault(from: &str, to: &str) -> Option<String> {
    let named = |edges: &[(&str, &str, &'static str)]| {
        edges.iter().find(|(a, b, _)| *a == from && *b == to).map(|(_, _, why)| *why)
    };
    if let Some(why) = named(FORBIDDEN) {
        return Some(format!("{from} -> {to}: {why}"));
    }
    let (below, above) = (layer(to)?, layer(from)?);
    if below > above {
        return Some(format!("{from} (layer {above}) -> {to} (layer {below}): upwards"));
    }
    if below == above && named(SIBLINGS).is_none() {
        return Some(format!("{from} -> {to}: both in layer {above}; siblings talk through wavescope-core"));
    }
    None
}

/// The layer of a package, from the table of rooms. A row may hold several packages.
fn layer(package: &str) -> Option<u8> {
    ARCHITECTURE.lines().find_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let layer = cells.next()?.parse().ok()?;
        cells.next()?.split(", ").any(|name| name.trim_matches('`') == package).then_some(layer)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edges(list: &[(&str, &[&str])]) -> Vec<String> {
        let named = |name: &str| json!({ "name": name });
        let package = |(name, to): &(&str, &[&str])| {
            let dependencies: Vec<_> = to.iter().map(|to| named(to)).collect();
            json!({ "name": name, "dependencies": dependencies, "targets": [] })
        };
        let metadata = json!({ "packages": list.iter().map(package).collect::<Vec<_>>() });
        wrong_edges(&Workspace::from_metadata(&metadata).unwrap())
    }

    #[test]
    fn this_workspace_has_no_wrong_edge() {
        check().unwrap();
    }

    #[test]
    fn downward_edges_are_right() {
        assert!(edges(&[("wavescope-counting", &["wavescope-core"]), ("wavescope-core", &[])]).is_empty());
    }

    #[test]
    fn upward_edge_is_named_with_both_layers() {
        let wrong = edges(&[("wavescope-core", &["wavescope-counting"]), ("wavescope-counting", &[])]);
        assert_eq!(wrong, ["wavescope-core (layer 1) -> wavescope-counting (layer 4): upwards"]);
    }

    #[test]
    fn siblings_and_forbidden_edges_are_wrong() {
        let wrong = edges(&[
            ("wavescope-counting", &["wavescope-att-resources"]),
            ("wavescope-software-gpu", &["wavescope-att-decode"]),
            ("wavescope-att-resources", &[]),
            ("wavescope-att-decode", &[]),
        ]);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("both in layer 4"));
        assert!(wrong[1].contains("judges the decoder"));
    }

    #[test]
    fn package_without_a_layer_is_wrong() {
        assert!(edges(&[("wavescope-new", &[])])[0].contains("wavescope-new has no layer"));
    }

    #[test]
    fn crates_from_elsewhere_are_no_edges() {
        assert!(edges(&[("wavescope-pm4", &["thiserror", "serde"])]).is_empty());
    }
}
