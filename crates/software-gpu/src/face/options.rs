//! What the in-process runtime is started with.

use std::path::PathBuf;
use std::sync::Arc;

use wavescope_core::{GfxTarget, Topology};

use super::Error;
use super::clock::TimeMode;
use super::preset::preset;
use crate::{DeviceOptions, FaultPlan, TruthSink};

/// Topology folder for programs that start the runtime by `hsa_init` alone.
const TOPOLOGY_VARIABLE: &str = "WAVESCOPE_GPU_TOPOLOGY";
/// Target (`gfx942`) or several equal GPUs of it (`gfx942*2`) for such programs.
const TARGET_VARIABLE: &str = "WAVESCOPE_GPU";

/// Which GPUs the machine has.
#[derive(Clone, Debug)]
enum Machine {
    Preset { target: GfxTarget, gpus: u32 },
    Folder(PathBuf),
    Given(Topology),
}

/// Which tools `hsa_init` loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tools {
    /// None: whoever started the runtime installs its tools itself.
    #[default]
    None,
    /// Those that `HSA_TOOLS_LIB` names, as ROCr does.
    FromEnvironment,
}

/// Options of [`SoftwareRuntime::start`](super::SoftwareRuntime::start).
///
/// ```
/// use wavescope_software_gpu::face::{Options, TimeMode};
///
/// let two_mi300x = Options::preset("gfx942".parse()?, 2).time(TimeMode::Skip).seed(7);
/// # let _ = two_mi300x;
/// # Ok::<(), wavescope_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Options {
    machine: Machine,
    pub(super) time: TimeMode,
    pub(super) tools: Tools,
    pub(super) poll_doorbells: bool,
    truth: Option<Arc<dyn TruthSink>>,
    faults: Option<FaultPlan>,
    seed: Option<u64>,
}

impl Options {
    /// A machine with `gpus` GPUs of a target with built-in topology: gfx942 (MI300X), gfx90a (MI210), gfx950
    /// (MI350X), gfx1100 (RX 7900 XTX) or gfx1201 (R9700).
    pub fn preset(target: GfxTarget, gpus: u32) -> Self {
        Self::of(Machine::Preset { target, gpus })
    }

    /// The machine that a KFD topology folder describes.
    pub fn topology_folder(folder: impl Into<PathBuf>) -> Self {
        Self::of(Machine::Folder(folder.into()))
    }

    /// The machine of a topology that was read before.
    pub fn machine(topology: Topology) -> Self {
        Self::of(Machine::Given(topology))
    }

    /// What the environment asks for: a folder (`WAVESCOPE_GPU_TOPOLOGY`), or a target and perhaps a number
    /// (`WAVESCOPE_GPU=gfx942*2`), or one MI300X; tools by `HSA_TOOLS_LIB`; doorbells in memory.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn from_environment() -> Result<Self, Error> {
        let options = match (std::env::var_os(TOPOLOGY_VARIABLE), std::env::var_os(TARGET_VARIABLE)) {
            (Some(folder), _) => Self::topology_folder(folder),
            (None, Some(target)) => Self::named(&target.to_string_lossy()).map_err(|reason| {
                Error::Environment { variable: TARGET_VARIABLE, value: target.into(), reason }
            })?,
            (None, None) => Self::preset(GfxTarget::GFX942, 1),
        };
        Ok(options.tools(Tools::FromEnvironment).poll_doorbells(true))
    }

    /// How time passes for the GPUs.
    #[must_use]
    pub fn time(self, time: TimeMode) -> Self {
        Self { time, ..self }
    }

    /// Which tools `hsa_init` loads.
    #[must_use]
    pub fn tools(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    /// Whether devices also look at the doorbells' words in memory, for applications that write
    /// `hardware_doorbell_ptr` themselves. Costs a little processor time while queues are idle.
    #[must_use]
    pub fn poll_doorbells(self, poll_doorbells: bool) -> Self {
        Self { poll_doorbells, ..self }
    }

    /// Who takes the truth log, instead of `WAVESCOPE_GPU_TRUTH`.
    #[must_use]
    pub fn truth(self, truth: Arc<dyn TruthSink>) -> Self {
        Self { truth: Some(truth), ..self }
    }

    /// What goes wrong, instead of `WAVESCOPE_GPU_FAULTS`.
    #[must_use]
    pub fn faults(self, faults: FaultPlan) -> Self {
        Self { faults: Some(faults), ..self }
    }

    /// Seed of wave durations, instead of `WAVESCOPE_GPU_SEED`.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    pub(super) fn topology(&self) -> Result<Topology, Error> {
        match &self.machine {
            Machine::Preset { target, gpus } => preset(*target, *gpus),
            Machine::Folder(folder) => Ok(Topology::read(folder)?),
            Machine::Given(topology) => Ok(topology.clone()),
        }
    }

    pub(super) fn apply_to(&self, device: &mut DeviceOptions) {
        if let Some(truth) = &self.truth {
            device.truth = Some(Arc::clone(truth));
        }
        if let Some(faults) = &self.faults {
            device.faults = faults.clone();
        }
        device.seed = self.seed.unwrap_or(device.seed);
    }

    fn of(machine: Machine) -> Self {
        Self {
            machine,
            time: TimeMode::default(),
            tools: Tools::default(),
            poll_doorbells: false,
            truth: None,
            faults: None,
            seed: None,
        }
    }

    fn named(text: &str) -> Result<Self, String> {
        let (target, gpus) = text.split_once('*').unwrap_or((text, "1"));
        let target = target.parse().map_err(|error: wavescope_core::Error| error.to_string())?;
        let gpus = gpus.parse().map_err(|_| format!("{gpus} is no number of GPUs"))?;
        Ok(Self::preset(target, gpus))
    }
}
