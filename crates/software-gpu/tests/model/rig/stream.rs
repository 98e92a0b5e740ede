//! Recorded command buffers of aqlprofile, put into a rig's memory.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wavescope_core::AqlPacket;
use wavescope_pm4::{Generation, IpBases, Target};
use wavescope_software_gpu::DeviceConfig;

use super::{Rig, commands};

/// One recorded set.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) json: Value,
}

/// A command buffer in memory.
#[derive(Clone)]
pub(crate) struct Buffer {
    pub(crate) address: u64,
    pub(crate) dwords: Vec<u32>,
}

/// A set with its allocations in memory.
pub(crate) struct Loaded {
    /// Address of each allocation.
    pub(crate) bases: Vec<u64>,
    /// Bytes of each allocation.
    pub(crate) sizes: Vec<u64>,
    buffers: Vec<(String, Buffer)>,
}

impl Recorded {
    /// A set that the repository holds.
    pub(crate) fn own(target: &str, name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aqlprofile");
        Self::read(&root.join(target).join(name))
    }

    pub(crate) fn read(path: &Path) -> Self {
        let mut text = String::new();
        let mut file = File::open(path).unwrap();
        if path.extension().is_some_and(|extension| extension == "gz") {
            flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        } else {
            file.read_to_string(&mut text).unwrap();
        }
        let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name: path.display().to_string(), json }
    }

    /// Whether the library made command buffers at all.
    pub(crate) fn has_commands(&self) -> bool {
        self.json["ib"].is_object()
    }

    /// The device that the set was recorded for.
    pub(crate) fn config(&self) -> DeviceConfig {
        config(&self.json["agent"])
    }

    /// A rig whose memory lies behind this address, at a place of each target's own: programs and traces hold addresses,
    /// and two runs are to give the same.
    pub(crate) fn rig_at(&self, first: u64) -> Rig {
        let config = self.config();
        let address = first + ((config.target as u64) << 36);
        Rig::at(config, address)
    }

    /// Writes everything into memory, addresses relocated.
    pub(crate) fn load(&self, rig: &Rig) -> Loaded {
        load(rig, &self.json["allocs"], &self.json["ib"])
    }
}

/// Allocates what `allocs` lists and writes the buffers of `ib` there.
pub(crate) fn load(rig: &Rig, allocs: &Value, ib: &Value) -> Loaded {
    let sizes: Vec<u64> = array(allocs).iter().map(|alloc| number(&alloc["size"])).collect();
    // The library accepts a trace buffer of no bytes; the engines then write a page each behind its address.
    const BEHIND: usize = 64 << 12;
    let bases: Vec<u64> = sizes.iter().map(|&size| rig.arena().allocate(size as usize + BEHIND)).collect();
    let buffers = ib.as_object().unwrap().iter().map(|(name, part)| {
        let address = bases[number(&part["alloc"]) as usize] + number(&part["off"]);
        let mut dwords = parse_dwords(part["dw"].as_str().unwrap());
        array(&part["relocs"]).iter().for_each(|reloc| relocate(&mut dwords, reloc, &bases));
        rig.arena().store_dwords(address, &dwords);
        (name.clone(), Buffer { address, dwords })
    });
    let buffers = buffers.collect();
    Loaded { bases, sizes, buffers }
}

impl Loaded {
    pub(crate) fn buffer(&self, name: &str) -> &Buffer {
        &self.buffers.iter().find(|(known, _)| known == name).unwrap().1
    }

    /// The packet that runs a buffer.
    pub(crate) fn packet(&self, name: &str, signal: u64) -> AqlPacket {
        let buffer = self.buffer(name);
        commands(buffer.address, buffer.dwords.len() as u32, signal)
    }
}

/// The recorded sets outside the repository, or why they are not there.
pub(crate) fn shared_sets() -> Result<Vec<PathBuf>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/aqlprofile");
    let folders = std::fs::read_dir(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let mut files = Vec::new();
    for folder in folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.sort();
    Ok(files)
}

pub(crate) fn config(agent: &Value) -> DeviceConfig {
    let count = |name: &str| number(&agent[name]) as u32;
    let target = Target::from_gfxip(agent["gfxip"].as_str().unwrap()).unwrap();
    let gfx9 = target.generation() == Generation::Gfx9;
    let (xcc, engines, arrays, units) = (count("xcc"), count("se"), count("sa_per_se"), count("cu"));
    let places = units.div_ceil(engines * arrays).next_multiple_of(if gfx9 { 1 } else { 2 });
    let hex =
        |value: &Value| u32::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    let bases = |ip: &Value, name: &str| array(&ip[name]).iter().map(hex).collect::<Vec<_>>();
    let bases = match &agent["ip_discovery"] {
        Value::Null => IpBases::fixed(target.generation()),
        ip => IpBases::new(&bases(ip, "GC"), &bases(ip, "ATHUB")),
    };
    DeviceConfig {
        target,
        xcc: xcc as u8,
        se_per_xcc: (engines / xcc) as u8,
        sa_per_se: arrays as u8,
        cu_per_sa: places as u8,
        compute_units: units,
        simd_per_cu: if gfx9 { 4 } else { 2 },
        waves_per_simd: if gfx9 { 8 } else { 16 },
        wave_size: if gfx9 { 64 } else { 32 },
        bases,
        ..DeviceConfig::mi300x()
    }
}

pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn parse_dwords(text: &str) -> Vec<u32> {
    let digits = text.as_bytes().chunks(8).map(|chunk| std::str::from_utf8(chunk).unwrap());
    digits.map(|digits| u32::from_str_radix(digits, 16).unwrap()).collect()
}

fn relocate(dwords: &mut [u32], reloc: &Value, bases: &[u64]) {
    let address = bases[number(&reloc[1]) as usize] + number(&reloc[2]);
    let value = match reloc[3].as_str().unwrap() {
        "lo" => address,
        "hi" => address >> 32,
        "shr8" => address >> 8,
        "shr40b" => address >> 40 & 0xFF,
        "shr12" => address >> 12,
        "shr44" => address >> 44 & 0xF | reloc[4].as_u64().unwrap_or(0),
        form => panic!("relocation form {form}"),
    };
    dwords[number(&reloc[0]) as usize] = value as u32;
}
