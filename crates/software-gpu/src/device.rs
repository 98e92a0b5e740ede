//! One agent: its configuration, its queues, its clock.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::machine::Machine;
use crate::queue::{Control, Seat};
use crate::sync::lock;
use crate::walk::GroupOutcomes;
use crate::{DeviceConfig, Error, FaultPlan, Host, Queue, QueueConfig, QueueId, TruthFile, TruthSink};

/// How a device behaves beyond its shape.
#[derive(Clone, Default)]
pub struct DeviceOptions {
    /// Takes the truth log.
    pub truth: Option<Arc<dyn TruthSink>>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Seed of branch outcomes and wave durations: the same seed, packets and clock give the same waves.
    pub seed: u64,
    /// What branches do; the seeded model if nobody hands it in.
    pub outcomes: Option<Arc<dyn GroupOutcomes>>,
}

impl DeviceOptions {
    /// What the environment asks for: the files `WAVESCOPE_GPU_TRUTH` and `WAVESCOPE_GPU_FAULTS`, the number
    /// `WAVESCOPE_GPU_SEED`. Devices of one process share these options, so that they share the log.
    ///
    /// # Errors
    /// [`Error::TruthLog`], [`Error::FaultPlan`], [`Error::Seed`].
    pub fn from_environment() -> Result<Self, Error> {
        let mut options = Self::default();
        if let Some(path) = std::env::var_os("WAVESCOPE_GPU_TRUTH") {
            options.truth = Some(Arc::new(TruthFile::create(Path::new(&path))?));
        }
        if let Some(path) = std::env::var_os("WAVESCOPE_GPU_FAULTS") {
            options.faults = FaultPlan::read(Path::new(&path))?;
        }
        if let Ok(seed) = std::env::var("WAVESCOPE_GPU_SEED") {
            options.seed = seed.parse().map_err(|_| Error::Seed(seed))?;
        }
        Ok(options)
    }
}

/// One GPU. Cheap to clone: all clones are the same device.
#[derive(Clone)]
pub struct Device {
    machine: Arc<Machine>,
    controls: Arc<Mutex<Vec<Arc<Control>>>>,
    created: Arc<AtomicU32>,
}

impl Device {
    /// Makes a device.
    ///
    /// # Errors
    /// [`Error::Geometry`] for a shape that cannot exist.
    pub fn new(config: DeviceConfig, host: Arc<dyn Host>, options: DeviceOptions) -> Result<Self, Error> {
        let machine = Machine::new(config, host, options)?;
        Ok(Self { machine: Arc::new(machine), controls: Arc::default(), created: Arc::default() })
    }

    /// Its shape, with what the fault plan has taken away.
    pub fn config(&self) -> &DeviceConfig {
        self.machine.config()
    }

    /// Its clock, in ticks of 100 MHz: the host's.
    pub fn clock(&self) -> u64 {
        self.machine.host().clock()
    }

    /// Creates a hardware queue and starts its consumer.
    ///
    /// # Errors
    /// [`Error::TooManyQueues`], [`Error::Ring`], [`Error::Memory`], [`Error::Thread`], [`Error::Injected`].
    pub fn create_queue(&self, config: QueueConfig) -> Result<Queue, Error> {
        if self.machine.faults().queue_fails() {
            return Err(Error::Injected("queue creation"));
        }
        let seat = self.take_seat()?;
        let id = QueueId(self.created.fetch_add(1, Ordering::Relaxed) + 1);
        Queue::create(id, config, Arc::clone(&self.machine), seat)
    }

    fn take_seat(&self) -> Result<Seat, Error> {
        let mut controls = lock(&self.controls);
        if controls.len() >= Queue::LIMIT {
            return Err(Error::TooManyQueues { limit: Queue::LIMIT });
        }
        let control = Arc::new(Control::default());
        controls.push(Arc::clone(&control));
        Ok(Seat { controls: Arc::clone(&self.controls), control })
    }

    /// Tells waiting queues that a signal has changed in memory. Only makes them notice sooner: they poll anyway.
    pub fn poke(&self) {
        lock(&self.controls).iter().for_each(|control| control.poke());
    }

    /// Whether the fault plan lets the next allocation of a face fail. Counts every call.
    pub fn allocation_fails(&self) -> bool {
        self.machine.faults().allocation_fails()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("config", self.config()).finish_non_exhaustive()
    }
}
