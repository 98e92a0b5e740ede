//! The software GPU's own log of what ran where (`WAVESCOPE_GPU_TRUTH`), written before any counter or trace code runs.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

/// The log of a machine, read as it grows. All lines of a dispatch are there before it completes.
#[derive(Debug)]
pub struct Placement(Mutex<Log>);

#[derive(Debug)]
struct Log {
    file: File,
    /// The beginning of a line whose end is not written yet.
    rest: String,
    dispatches: Vec<Placed>,
    /// By device and dispatch.
    waves: HashMap<(u32, u64), Vec<PlacedWave>>,
    /// By device and dispatch, in the order of their numbers.
    walks: HashMap<(u32, u64), Vec<Walk>>,
    /// By device and number.
    paths: HashMap<(u32, u64), Way>,
}

/// How waves walked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Walk {
    device: u32,
    dispatch: u64,
    path: u64,
    /// Instructions of one wave by kind.
    pub instructions: HashMap<String, u64>,
    /// Where and why it stopped before the program ended.
    pub stopped: Option<(u64, String)>,
}

#[derive(Debug, Deserialize)]
struct Way {
    device: u32,
    path: u64,
    instructions: Vec<(u64, u8)>,
}

/// A dispatch that ran.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Placed {
    /// The GPU, from 0.
    pub device: u32,
    /// Number of the dispatch on its GPU, from 1.
    pub dispatch: u64,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Grid size in work-items.
    pub grid: [u32; 3],
    /// Work-group size.
    pub workgroup: [u32; 3],
    /// Waves launched.
    pub waves: u64,
}

/// A wave that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct PlacedWave {
    device: u32,
    dispatch: u64,
    /// XCC.
    pub xcc: u32,
    /// Shader engine within the XCC.
    pub se: u32,
    /// Shader array within the engine.
    pub sa: u8,
    /// Compute unit within the array.
    pub cu: u8,
    /// SIMD: within the compute unit on gfx9, within the WGP later.
    pub simd: u8,
    /// Wave slot of the SIMD.
    pub slot: u8,
    /// First cycle in the slot.
    pub start: u64,
    /// First cycle after it.
    pub end: u64,
    walk: u32,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Dispatch(Placed),
    Walk(Walk),
    Path(Way),
    Wave(PlacedWave),
    #[serde(other)]
    Other,
}

impl Placement {
    /// Reads the log at `path`, which may still be empty.
    pub(crate) fn open(path: &Path) -> Self {
        let file = File::open(path).expect("the placement log");
        Self(Mutex::new(Log {
            file,
            rest: String::new(),
            dispatches: Vec::new(),
            waves: HashMap::new(),
            walks: HashMap::new(),
            paths: HashMap::new(),
        }))
    }

    /// Dispatches of a GPU, in the order in which they ran.
    pub fn dispatches(&self, device: u32) -> Vec<Placed> {
        self.log().dispatches.iter().filter(|dispatch| dispatch.device == device).cloned().collect()
    }

    /// Waves of a GPU's dispatch.
    pub fn waves(&self, device: u32, dispatch: u64) -> Vec<PlacedWave> {
        self.log().waves.get(&(device, dispatch)).cloned().unwrap_or_default()
    }

    /// How a wave walked.
    pub fn walk(&self, wave: &PlacedWave) -> Walk {
        self.log().walks[&(wave.device, wave.dispatch)][wave.walk as usize].clone()
    }

    /// The instructions of a wave that a trace shows: address and category number.
    pub fn instructions(&self, wave: &PlacedWave) -> Vec<(u64, u8)> {
        let walk = self.walk(wave);
        self.log()
            .paths
            .get(&(wave.device, walk.path))
            .map(|path| path.instructions.clone())
            .unwrap_or_default()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.read_on();
        log
    }
}

impl Log {
    fn read_on(&mut self) {
        self.file.read_to_string(&mut self.rest).expect("the placement log can be read");
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let rest = self.rest.split_off(whole);
        for line in std::mem::replace(&mut self.rest, rest).lines() {
            match serde_json::from_str(line).expect("a line of the placement log") {
                Line::Dispatch(dispatch) => self.dispatches.push(dispatch),
                Line::Wave(wave) => self.waves.entry((wave.device, wave.dispatch)).or_default().push(wave),
                Line::Walk(walk) => self.walks.entry((walk.device, walk.dispatch)).or_default().push(walk),
                Line::Path(way) => {
                    self.paths.insert((way.device, way.path), way);
                }
                Line::Other => {}
            }
        }
    }
}
