//! Which GPUs a machine has: a topology folder, found by name or made for several equal GPUs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;
use crate::sysroot::cache;

/// GPUs that a folder can be made for.
const MOST: u32 = 64;

/// Which GPUs: `gfx942`, `gfx942-x8` for eight of them, or the path of a topology folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// Equal GPUs of a target for which there is a folder in the repository.
    Equal {
        /// Name of the folder.
        target: String,
        /// How many.
        count: u32,
    },
    /// A folder of the caller's.
    Folder(PathBuf),
}

impl FromStr for Gpus {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if Path::new(name).is_dir() {
            return Ok(Self::Folder(PathBuf::from(name)));
        }
        let unknown = || Error::UnknownGpus { name: name.to_owned() };
        let (target, count) = match name.rsplit_once("-x") {
            Some((target, count)) => (target, count.parse().map_err(|_| unknown())?),
            None => (name, 1),
        };
        let known = presets().join(target).join("nodes/1").is_dir() && !target.contains('/');
        if !known || !(1..=MOST).contains(&count) {
            return Err(unknown());
        }
        Ok(Self::Equal { target: target.to_owned(), count })
    }
}

impl Gpus {
    /// The folder that describes them; made in the project's cache folder where there are several.
    ///
    /// # Errors
    /// [`Error::NoCache`], [`Error::File`], [`Error::Topology`].
    pub fn folder(&self) -> Result<PathBuf, Error> {
        match self {
            Self::Folder(folder) => std::path::absolute(folder).map_err(Error::file(folder)),
            Self::Equal { target, count: 1 } => {
                let folder = presets().join(target);
                folder.canonicalize().map_err(Error::file(folder))
            }
            Self::Equal { target, count } => cached(&presets().join(target), target, *count),
        }
    }
}

/// Folders with one GPU each.
fn presets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../software-gpu/topology")
}

/// Makes the folder under a name of this process and renames it: others see all of it or nothing.
fn cached(preset: &Path, target: &str, count: u32) -> Result<PathBuf, Error> {
    let parent = cache()?.join("topology");
    let folder = parent.join(format!("{target}-x{count}"));
    let own = parent.join(format!("{target}-x{count}.{}", std::process::id()));
    multiply(preset, count, &own)?;
    if !same(&own, &folder) {
        // One of another version, if any: whoever read it has read it.
        let _ = std::fs::remove_dir_all(&folder);
        match std::fs::rename(&own, &folder) {
            Ok(()) => return Ok(folder),
            // Another process was faster.
            Err(_) if same(&own, &folder) => {}
            Err(source) => return Err(Error::File { path: folder, source }),
        }
    }
    std::fs::remove_dir_all(&own).map_err(Error::file(own))?;
    Ok(folder)
}

/// Whether two folders made here are of the same version.
fn same(a: &Path, b: &Path) -> bool {
    ["nodes/1/properties", "nodes/0/io_links/0/properties", "nodes/2/io_links/1/properties"].iter().all(
        |name| {
            let text = |folder: &Path| std::fs::read_to_string(folder.join(name)).ok();
            text(a) == text(b)
        },
    )
}

/// Writes a topology with `count` copies of the GPU of `preset`, each linked to the CPU and to every other GPU.
fn multiply(preset: &Path, count: u32, into: &Path) -> Result<(), Error> {
    let gpu = preset.join("nodes/1");
    let properties = Properties::read(&gpu.join("properties"))?;
    let engines = Engines {
        own: properties.number("num_sdma_engines")? as u32,
        fabric: properties.number("num_sdma_xgmi_engines")? as u32,
    };
    // Chips that have links of their own between GPUs are those with engines for them.
    let fabric = engines.fabric > 0;
    copy(preset, into, &["generation_id", "system_properties"])?;
    copy_node(&preset.join("nodes/0"), &into.join("nodes/0"))?;
    let cpu = Properties::read(&preset.join("nodes/0/properties"))?;
    write(&into.join("nodes/0/properties"), &cpu.with("io_links_count", u64::from(count)).text())?;
    for index in 0..count {
        write_link(&into.join(format!("nodes/0/io_links/{index}")), Link::pcie(0, index + 1, engines))?;
        let node = into.join(format!("nodes/{}", index + 1));
        copy_node(&gpu, &node)?;
        write(&node.join("gpu_id"), &format!("{}\n", index + 2))?;
        write(&node.join("properties"), &one_of(&properties, index, count, fabric)?.text())?;
        write_link(&node.join("io_links/0"), Link::pcie(index + 1, 0, engines))?;
        let peers = (0..count).filter(|peer| *peer != index);
        for (at, peer) in peers.enumerate() {
            let (folder, link) = if fabric {
                (
                    node.join(format!("io_links/{}", at + 1)),
                    Link::fabric(index + 1, peer + 1, fabric_mask(engines, count, index, peer)),
                )
            } else {
                (node.join(format!("p2p_links/{at}")), Link::peer(index + 1, peer + 1, engines))
            };
            write_link(&folder, link)?;
        }
    }
    Ok(())
}

/// The properties of GPU `index`: what must differ between equal GPUs, and how many links there are.
fn one_of(first: &Properties, index: u32, count: u32, fabric: bool) -> Result<Properties, Error> {
    /// Any number but 0: GPUs with the same one share a fabric.
    const HIVE: u64 = 0x1122_3344_5566_7700;
    let index = u64::from(index);
    let peers = u64::from(count) - 1;
    let (io_links, p2p_links) = if fabric { (1 + peers, 0) } else { (1, peers) };
    let hive = if fabric { HIVE } else { 0 };
    Ok(first
        .with("location_id", first.number("location_id")? + (index << 8))
        .with("drm_render_minor", first.number("drm_render_minor")? + index)
        .with("unique_id", first.number("unique_id")? + index)
        .with("simd_id_base", first.number("simd_id_base")? + index * 8)
        .with("hive_id", hive)
        .with("io_links_count", io_links)
        .with("p2p_links_count", p2p_links))
}

/// A properties file: lines `name value`, their order kept.
#[derive(Clone)]
struct Properties {
    path: PathBuf,
    lines: Vec<(String, String)>,
}

impl Properties {
    fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let lines = pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Ok(Self { path: path.to_owned(), lines })
    }

    fn number(&self, name: &str) -> Result<u64, Error> {
        let value = self.lines.iter().find(|(known, _)| known == name).map(|(_, value)| value.parse());
        match value {
            Some(Ok(value)) => Ok(value),
            _ => Err(Error::Topology { path: self.path.clone(), what: format!("no number {name}") }),
        }
    }

    fn with(&self, name: &str, value: u64) -> Self {
        let mut changed = self.clone();
        let value = value.to_string();
        match changed.lines.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => changed.lines.push((name.to_owned(), value)),
        }
        changed
    }

    fn text(&self) -> String {
        self.lines.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
    }
}

/// SDMA engines of a GPU: first those for any use, then those for the fabric.
#[derive(Clone, Copy)]
struct Engines {
    own: u32,
    fabric: u32,
}

/// A link between two nodes, with the values of the drivers' own tables (`kfd_crat.c`, and for the recommended engines
/// `kfd_set_recommended_sdma_engines` of `kfd_topology.c`).
struct Link {
    /// `HSA_IOLINKTYPE`: 2 PCI Express, 11 xGMI.
    kind: u32,
    from: u32,
    to: u32,
    weight: u32,
    min_bandwidth: u32,
    max_bandwidth: u32,
    /// One bit for each SDMA engine that had best copy over it.
    engine_mask: u32,
}

impl Link {
    fn pcie(from: u32, to: u32, engines: Engines) -> Self {
        let engine_mask = ones(engines.own);
        Self { kind: 2, from, to, weight: 20, min_bandwidth: 312, max_bandwidth: 64_000, engine_mask }
    }

    fn fabric(from: u32, to: u32, engine_mask: u32) -> Self {
        Self { kind: 11, from, to, weight: 15, min_bandwidth: 50_000, max_bandwidth: 50_000, engine_mask }
    }

    fn peer(from: u32, to: u32, engines: Engines) -> Self {
        Self { weight: 40, ..Self::pcie(from, to, engines) }
    }
}

/// Engine that the driver recommends from each GPU of a box of eight to each other.
const BOX_OF_EIGHT: [[u32; 8]; 8] = [
    [0, 14, 12, 2, 4, 8, 10, 6],
    [14, 0, 2, 10, 8, 4, 6, 12],
    [10, 2, 0, 12, 14, 6, 4, 8],
    [2, 12, 10, 0, 6, 14, 8, 4],
    [4, 8, 14, 6, 0, 10, 12, 2],
    [8, 4, 6, 14, 12, 0, 2, 10],
    [10, 6, 4, 8, 12, 2, 0, 14],
    [6, 12, 8, 4, 2, 10, 14, 0],
];

/// Engines for the fabric from one GPU to another: one of its own in a full box with fourteen of them, else all.
fn fabric_mask(engines: Engines, count: u32, from: u32, to: u32) -> u32 {
    let recommended = BOX_OF_EIGHT.get(from as usize).and_then(|row| row.get(to as usize));
    match recommended {
        Some(engine) if count == 8 && engines.fabric >= 14 => 1 << engine,
        _ => ones(engines.fabric) << engines.own,
    }
}

/// The lowest `count` bits.
fn ones(count: u32) -> u32 {
    u32::MAX.checked_shr(32 - count.min(32)).unwrap_or(0)
}

fn write_link(folder: &Path, link: Link) -> Result<(), Error> {
    let Link { kind, from, to, weight, min_bandwidth, max_bandwidth, engine_mask } = link;
    let values = [
        ("type", kind),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from),
        ("node_to", to),
        ("weight", weight),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", min_bandwidth),
        ("max_bandwidth", max_bandwidth),
        ("recommended_transfer_size", 0),
        ("recommended_sdma_engine_id_mask", engine_mask),
        ("flags", 1),
    ];
    let mut text = String::new();
    for (name, value) in values {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} {value}");
    }
    write(&folder.join("properties"), &text)
}

/// Copies a node's files but not its links.
fn copy_node(from: &Path, to: &Path) -> Result<(), Error> {
    copy(from, to, &["gpu_id", "name", "properties"])?;
    for kind in ["mem_banks", "caches"] {
        let Ok(entries) = std::fs::read_dir(from.join(kind)) else { continue };
        for entry in entries {
            let entry = entry.map_err(Error::file(from.join(kind)))?;
            copy(&entry.path(), &to.join(kind).join(entry.file_name()), &["properties"])?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, names: &[&str]) -> Result<(), Error> {
    for name in names {
        let path = from.join(name);
        let text = std::fs::read_to_string(&path).map_err(Error::file(path))?;
        write(&to.join(name), &text)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(Error::file(parent))?;
    }
    std::fs::write(path, text).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn files(root: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(root).unwrap().to_owned();
                    found.insert(name, std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        found
    }

    #[test]
    fn names_mean_targets_with_a_number_or_folders() {
        let equal = |target: &str, count| Gpus::Equal { target: target.to_owned(), count };
        assert_eq!("gfx942".parse::<Gpus>().unwrap(), equal("gfx942", 1));
        assert_eq!("gfx90a-x8".parse::<Gpus>().unwrap(), equal("gfx90a", 8));
        assert!(matches!("/".parse::<Gpus>().unwrap(), Gpus::Folder(_)));
        for name in ["", "gfx000", "gfx942-x0", "gfx942-x", "gfx942-x65", "../gfx942"] {
            assert!(name.parse::<Gpus>().is_err(), "{name}");
        }
    }

    // The folder with two GPUs was made by hand and has been read by the real runtime.
    #[test]
    fn two_gpus_come_out_as_in_the_folder_made_by_hand() {
        let by_hand = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/topology");
        let folder = tempfile::tempdir().unwrap();
        multiply(&by_hand.join("gfx942"), 2, folder.path()).unwrap();
        let (made, wanted) = (files(folder.path()), files(&by_hand.join("gfx942-x2")));
        assert_eq!(made.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        // Where the second GPU sits on the bus is anybody's choice; the folder recommends no engines.
        const FREE: [&str; 3] = ["location_id", "hive_id", "recommended_sdma_engine_id_mask"];
        let free = |line: &&str| !FREE.contains(&line.split(' ').next().unwrap());
        for (name, text) in &made {
            let (made, wanted) = (text.lines().filter(free), wanted[name].lines().filter(free));
            assert_eq!(made.collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "{}", name.display());
        }
    }

    #[test]
    fn links_recommend_the_engines_that_are_for_them() {
        // MI300X: two engines for any use, fourteen for the fabric.
        let engines = Engines { own: 2, fabric: 14 };
        assert_eq!(Link::pcie(0, 1, engines).engine_mask, 0x3);
        assert_eq!(fabric_mask(engines, 2, 0, 1), 0xFFFC);
        // In a full box each GPU has an engine of its own for each other one.
        for from in 0..8 {
            let to = (0..8).filter(|to| *to != from);
            let all = to.map(|to| fabric_mask(engines, 8, from, to)).fold(0, |all, mask| all | mask);
            assert_eq!(all.count_ones(), 7, "{all:#x}");
        }
        assert_eq!((ones(0), ones(32)), (0, u32::MAX));
    }

    #[test]
    fn counts_equal_the_folders_for_chips_with_and_without_a_fabric() {
        for target in ["gfx942", "gfx1100"] {
            let folder = tempfile::tempdir().unwrap();
            multiply(&presets().join(target), 8, folder.path()).unwrap();
            for node in 0..=8 {
                let node = folder.path().join(format!("nodes/{node}"));
                let properties = Properties::read(&node.join("properties")).unwrap();
                for kind in ["io_links", "p2p_links", "mem_banks", "caches"] {
                    let entries = std::fs::read_dir(node.join(kind)).map_or(0, Iterator::count);
                    let count = properties.number(&format!("{kind}_count")).unwrap();
                    assert_eq!(count, entries as u64, "{} {kind}", node.display());
                }
            }
        }
    }
}
