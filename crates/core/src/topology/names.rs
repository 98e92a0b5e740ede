//! Product names by PCI device id, as the public `pci.ids` list has them.
//!
//! The board revision that would tell an XTX from an XT is not in the topology, so such ids name all of them.

use crate::GfxTarget;

const NAMES: [(u32, &str); 14] = [
    (0x738c, "AMD Instinct MI100"),
    (0x7408, "AMD Instinct MI250X"),
    (0x740c, "AMD Instinct MI250X/MI250"),
    (0x740f, "AMD Instinct MI210"),
    (0x74a0, "AMD Instinct MI300A"),
    (0x74a1, "AMD Instinct MI300X"),
    (0x74a5, "AMD Instinct MI325X"),
    (0x75a0, "AMD Instinct MI350X"),
    (0x75a3, "AMD Instinct MI355X"),
    (0x73bf, "AMD Radeon RX 6800/6800 XT/6900 XT"),
    (0x744c, "AMD Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M"),
    (0x7480, "AMD Radeon RX 7600 series"),
    (0x7550, "AMD Radeon RX 9070/9070 XT/9070 GRE"),
    (0x7551, "AMD Radeon AI PRO R9700"),
];

pub(super) fn marketing_name(target: GfxTarget, device_id: u32) -> String {
    match NAMES.iter().find(|(id, _)| *id == device_id) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("{target} (device {device_id:#06x})"),
    }
}
