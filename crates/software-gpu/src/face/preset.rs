//! Topologies that need no folder: one target, any number of equal GPUs.

use std::io;
use std::path::Path;

use wavescope_core::{GfxTarget, Topology};

use super::Error;

/// The files of a target's GPU node that a topology reader looks at.
struct Preset {
    target: GfxTarget,
    node: &'static str,
    bank: &'static str,
}

macro_rules! preset {
    ($target:ident, $folder:literal) => {
        Preset {
            target: GfxTarget::$target,
            node: include_str!(concat!("../../topology/", $folder, "/nodes/1/properties")),
            bank: include_str!(concat!("../../topology/", $folder, "/nodes/1/mem_banks/0/properties")),
        }
    };
}

const PRESETS: [Preset; 5] = [
    preset!(GFX942, "gfx942"),
    preset!(GFX90A, "gfx90a"),
    preset!(GFX950, "gfx950"),
    preset!(GFX1100, "gfx1100"),
    preset!(GFX1201, "gfx1201"),
];

/// A machine with `gpus` GPUs of `target` behind one CPU node.
pub(super) fn preset(target: GfxTarget, gpus: u32) -> Result<Topology, Error> {
    let preset = PRESETS.iter().find(|preset| preset.target == target);
    let preset = preset.ok_or(Error::NoPreset { target })?;
    Ok(Topology::read_with(Path::new("built-in"), |file| preset.file(file, gpus))?)
}

impl Preset {
    fn file(&self, file: &str, gpus: u32) -> io::Result<Vec<u8>> {
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        let Some(inside) = file.strip_prefix("nodes/") else {
            return if file == "generation_id" { Ok(b"1\n".to_vec()) } else { Err(absent()) };
        };
        let (node, file) = inside.split_once('/').ok_or_else(absent)?;
        let node: u32 = node.parse().map_err(|_| absent())?;
        match (node, file) {
            (0, "gpu_id") => Ok(b"0\n".to_vec()),
            (node, _) if node == 0 || node > gpus => Err(absent()),
            (node, "gpu_id") => Ok(format!("{}\n", node + 1).into_bytes()),
            (node, "properties") => Ok(self.node_properties(node).into_bytes()),
            (_, "mem_banks/0/properties") => Ok(self.bank.as_bytes().to_vec()),
            _ => Err(absent()),
        }
    }

    /// The node's properties with what differs between equal GPUs of one machine: the PCI bus.
    fn node_properties(&self, node: u32) -> String {
        let line = |line: &str| match line.split_once(' ') {
            Some(("location_id", first)) => {
                let first: u32 = first.trim().parse().unwrap_or(0);
                format!("location_id {}\n", first + ((node - 1) << 8))
            }
            _ => format!("{line}\n"),
        };
        self.node.lines().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Compute units as AMD's data sheets give them.
    #[test]
    fn every_preset_has_the_compute_units_of_its_data_sheet() {
        let sheets = [
            (GfxTarget::GFX942, 304),
            (GfxTarget::GFX90A, 104),
            (GfxTarget::GFX950, 256),
            (GfxTarget::GFX1100, 96),
            (GfxTarget::GFX1201, 64),
        ];
        assert_eq!(PRESETS.len(), sheets.len());
        for (target, compute_units) in sheets {
            let topology = preset(target, 1).unwrap();
            assert_eq!(topology.agents().len(), 1);
            assert_eq!(topology.agents()[0].target, target);
            assert_eq!(topology.agents()[0].compute_units, compute_units, "{target}");
        }
    }

    #[test]
    fn equal_gpus_differ_in_node_and_bus() {
        let topology = preset(GfxTarget::GFX942, 8).unwrap();
        let mut places: Vec<_> = topology.agents().iter().map(|a| (a.node, a.pci.location_id)).collect();
        assert_eq!(places.len(), 8);
        places.dedup_by_key(|(_, location)| *location);
        assert_eq!(places.len(), 8);
    }

    #[test]
    fn target_without_a_preset_is_named() {
        let error = preset(GfxTarget::GFX1250, 1).unwrap_err();
        assert!(error.to_string().contains("gfx1250"), "{error}");
    }
}
