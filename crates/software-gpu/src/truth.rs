//! The truth log: what ran where and when, written before any counter or trace code sees it.
//!
//! One JSON object per line; the field `kind` says which. Clocks are device cycles
//! ([`DeviceConfig::cycles_per_tick`](crate::DeviceConfig::cycles_per_tick) per 100 MHz tick).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex};

use serde::{Serialize, Serializer};

use crate::Error;
use crate::walk::{Counts, Path, Stop};

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Truth {
    /// A kernel dispatch was placed. Its waves follow, before the next dispatch of the device.
    Dispatch(DispatchTruth),
    /// A way through a program, before the first dispatch whose waves take it.
    Path(PathTruth),
    /// How waves of the dispatch walk. All of them come before the waves.
    Walk(WalkTruth),
    /// One wave of it.
    Wave(WaveTruth),
    /// An event was selected that the model does not count: the counter reads zero.
    Unmodelled {
        /// Device number.
        device: u32,
        /// Block name.
        block: String,
        /// Event id as selected.
        event: u32,
    },
}

/// A placed dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DispatchTruth {
    /// Device number.
    pub device: u32,
    /// Number of the dispatch on its device, from 1.
    pub dispatch: u64,
    /// The queue.
    pub queue: u32,
    /// Index of its packet in the queue.
    pub packet: u64,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Grid size in work-items.
    pub grid: [u32; 3],
    /// Work-group size.
    pub workgroup: [u32; 3],
    /// Work-groups launched.
    pub workgroups: u64,
    /// Waves launched.
    pub waves: u64,
    /// When the first wave could start, in device cycles.
    pub start: u64,
    /// When the last wave ended, in device cycles.
    pub end: u64,
}

/// A way through a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathTruth {
    /// Device number.
    pub device: u32,
    /// Number of the path on its device.
    pub path: u64,
    /// The instructions. In log files: address and category of those that a trace shows.
    #[serde(serialize_with = "traced")]
    pub instructions: Arc<Path>,
}

fn traced<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(path.traced().map(|(pc, category)| (pc, category as u8)))
}

/// How waves walk: their path, with one set of times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WalkTruth {
    /// Device number.
    pub device: u32,
    /// Number of the dispatch on its device.
    pub dispatch: u64,
    /// Number of the walk in the dispatch.
    pub walk: u32,
    /// Number of the path.
    pub path: u64,
    /// Instructions of one wave.
    pub instructions: Counts,
    /// Where and why a wave stopped before the program ended.
    pub stopped: Option<(u64, Stop)>,
}

/// A placed wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WaveTruth {
    /// Device number.
    pub device: u32,
    /// Number of the dispatch on its device.
    pub dispatch: u64,
    /// Number of its work-group in the dispatch, x fastest.
    pub workgroup: u64,
    /// Accelerator complex die.
    pub xcc: u8,
    /// Shader engine within the XCC.
    pub se: u8,
    /// Shader array within the engine.
    pub sa: u8,
    /// Compute unit within the array, as the hardware numbers it. On gfx10 and later its WGP is `cu / 2`.
    pub cu: u8,
    /// SIMD: within the compute unit on gfx9, within the WGP on gfx10 and later.
    pub simd: u8,
    /// Wave slot of the SIMD.
    pub slot: u8,
    /// First cycle in the slot.
    pub start: u64,
    /// First cycle after it.
    pub end: u64,
    /// Active lanes at the start.
    pub lanes: u8,
    /// Its walk, by the number in the dispatch.
    pub walk: u32,
}

/// Takes the truth as it happens. Called under the device's lock: no call back into the device.
pub trait TruthSink: Send + Sync {
    /// Takes one entry.
    fn record(&self, truth: &Truth);

    /// Makes everything recorded so far visible to readers. Called before a dispatch completes.
    fn flush(&self) {}
}

/// A sink that writes JSON lines to a file (`WAVESCOPE_GPU_TRUTH`).
#[derive(Debug)]
pub struct TruthFile {
    writer: Mutex<BufWriter<File>>,
}

impl TruthFile {
    /// Creates or empties the file.
    ///
    /// # Errors
    /// [`Error::TruthLog`] if it cannot be created.
    pub fn create(path: &std::path::Path) -> Result<Self, Error> {
        let file = File::create(path)
            .map_err(|source| Error::TruthLog { path: path.display().to_string(), source })?;
        Ok(Self { writer: Mutex::new(BufWriter::new(file)) })
    }
}

impl TruthSink for TruthFile {
    fn record(&self, truth: &Truth) {
        let Ok(mut writer) = self.writer.lock() else { return };
        // A full disk must not stop the device; a judge that finds lines missing fails by itself.
        let _ = serde_json::to_writer(&mut *writer, truth).map(|()| writer.write_all(b"\n"));
    }

    fn flush(&self) {
        if let Ok(mut writer) = self.writer.lock() {
            let _ = writer.flush();
        }
    }
}
