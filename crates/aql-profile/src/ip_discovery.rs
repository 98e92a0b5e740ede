//! A device's own segment bases, as the kernel driver shows them in sysfs.
//!
//! Layout: kernel `drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c`; what upstream's library reads of it:
//! ROCm/rocm-systems `projects/aqlprofile/src/core/parse_ip_discovery.cpp`.

use std::fs;
use std::path::{Path, PathBuf};

use wavescope_pm4::IpBases;

/// Bases of the device at a PCI location (its function is taken as 0). `None` when a file is missing or does not
/// read as it should: the caller then uses the fixed bases.
pub(crate) fn discover(root: &Path, domain: u32, location_id: u32) -> Option<IpBases> {
    let (bus, device) = (location_id >> 8 & 0xFF, location_id >> 3 & 0x1F);
    let dies = root
        .join("bus/pci/devices")
        .join(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
        .join("ip_discovery/die");
    let dies = folders(&dies)?;
    let segments = |ip: &str| dies.iter().find_map(|die| first_instance(&die.join(ip)));
    Some(IpBases::new(&segments("GC")?, &segments("ATHUB")?))
}

/// Bases of instance 0 of an IP block; `None` unless every instance's files can be read.
fn first_instance(block: &Path) -> Option<Vec<u32>> {
    let mut first = None;
    for folder in folders(block)? {
        for file in ["major", "minor", "revision"] {
            number(fs::read_to_string(folder.join(file)).ok()?.trim())?;
        }
        let instance = number(fs::read_to_string(folder.join("num_instance")).ok()?.trim())?;
        let bases = fs::read_to_string(folder.join("base_addr")).ok()?;
        let bases = bases.lines().map(|line| hexadecimal(line.trim())).collect::<Option<Vec<_>>>()?;
        if instance == 0 && first.is_none() {
            first = Some(bases);
        }
    }
    first
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(path).ok()?;
    let mut folders: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    Some(folders)
}

/// Decimal digits, or hexadecimal ones after `0x`.
fn number(text: &str) -> Option<u32> {
    if text.starts_with("0x") { hexadecimal(text) } else { text.parse().ok() }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, ip: &str, instance: u32, bases: &str) {
        let folder = folder.join("bus/pci/devices/0000:41:00.0/ip_discovery/die/0").join(ip);
        let folder = folder.join(instance.to_string());
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in [("major", "12"), ("minor", "0"), ("revision", "1")] {
            fs::write(folder.join(file), text).unwrap();
        }
        fs::write(folder.join("num_instance"), instance.to_string()).unwrap();
        fs::write(folder.join("base_addr"), bases).unwrap();
    }

    #[test]
    fn bases_of_instance_0_are_taken() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "GC", 0, "0x00001280\n0x0000A100\n0x0001C200\n");
        write(root.path(), "GC", 1, "0x00009999\n");
        write(root.path(), "ATHUB", 0, "00000c40\n");
        let found = discover(root.path(), 0, 0x4100);
        assert_eq!(found, Some(IpBases::new(&[0x1280, 0xA100, 0x1_C200], &[0xC40])));
    }

    #[test]
    fn a_missing_or_unreadable_file_means_no_discovery() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(discover(root.path(), 0, 0x4100), None);
        write(root.path(), "GC", 0, "0x00001280\n");
        assert_eq!(discover(root.path(), 0, 0x4100), None);
        write(root.path(), "ATHUB", 0, "surely not a number\n");
        assert_eq!(discover(root.path(), 0, 0x4100), None);
    }
}
