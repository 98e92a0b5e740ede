//! What goes wrong on purpose: a plan read from a file or built in a test.
//!
//! The file (`WAVESCOPE_GPU_FAULTS`) is a JSON array of [`Fault`]s:
//!
//! ```
//! let plan = wavescope_software_gpu::FaultPlan::parse(
//!     r#"[{"lose_completion": {"queue": 1, "packet": 7}}, {"hang": {"queue": 2, "packet": 0}}]"#,
//! )?;
//! assert_eq!(plan.faults.len(), 2);
//! # Ok::<(), wavescope_software_gpu::Error>(())
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;

use crate::{Error, Harvest, QueueId, TICKS_PER_SECOND};

/// A packet of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct CompletionFault {
    /// The queue's number ([`QueueId`](crate::QueueId)); 0 means every queue.
    pub queue: u32,
    /// The packet's index.
    pub packet: u64,
    /// How late, in microseconds, where lateness is the fault.
    #[serde(default)]
    pub micros: u64,
}

/// Bits that a status register shows though they are not true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct StatusLie {
    /// XCC.
    pub xcc: u8,
    /// Shader engine within the XCC.
    pub se: u8,
    /// Bits set in the thread-trace status.
    pub set: u32,
    /// Bits cleared in it.
    #[serde(default)]
    pub clear: u32,
}

/// A gap in every trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct TraceLoss {
    /// Events before it, from the start of the trace of a shader engine.
    pub after: u64,
    /// Events that are lost.
    pub events: u64,
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// The packet runs, but its completion signal is never touched.
    LoseCompletion(CompletionFault),
    /// The packet's completion comes late. Later packets of the queue go on.
    DelayCompletion(CompletionFault),
    /// The packet's completion comes after that of the packet behind it.
    ReorderCompletion(CompletionFault),
    /// The queue never gets past this packet.
    Hang(CompletionFault),
    /// The queue stops with an error at this packet.
    QueueError {
        /// The queue's number; 0 means every queue.
        queue: u32,
        /// The packet's index.
        packet: u64,
        /// The HSA status that the runtime is told.
        status: u32,
    },
    /// The n-th queue created on the device fails, counted from 1.
    FailQueue(u32),
    /// The n-th allocation on the device fails, counted from 1. For faces that own allocation.
    FailAllocation(u32),
    /// Trace buffers take no more than this many bytes and then are full.
    TraceBytes(u64),
    /// Traces lose tokens, as when their FIFO overflows.
    LoseTrace(TraceLoss),
    /// A compute unit or WGP is missing.
    Harvest(Harvest),
    /// A thread-trace status register lies.
    LieStatus(StatusLie),
}

/// All faults of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// In no particular order.
    pub faults: Vec<Fault>,
}

impl FaultPlan {
    /// Reads a plan from JSON text.
    ///
    /// # Errors
    /// [`Error::FaultPlan`] with the place of the mistake.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_named("text", text)
    }

    /// Reads a plan from a file.
    ///
    /// # Errors
    /// [`Error::FaultPlan`] if it cannot be read or is no plan.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::FaultPlan { path: name.clone(), reason: error.to_string() })?;
        Self::parse_named(&name, &text)
    }

    fn parse_named(name: &str, text: &str) -> Result<Self, Error> {
        let faults = serde_json::from_str(text)
            .map_err(|error| Error::FaultPlan { path: name.to_owned(), reason: error.to_string() })?;
        Ok(Self { faults })
    }
}

/// What a fault does to a packet before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketFault {
    Hang,
    Error(u32),
}

/// How a completion is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) lose: bool,
    pub(crate) late_ticks: u64,
    pub(crate) after_next: bool,
}

/// A plan at work: with the counts of what has happened.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    plan: FaultPlan,
    queues: AtomicU32,
    allocations: AtomicU32,
}

impl CompletionFault {
    fn hits(&self, queue: QueueId, packet: u64) -> bool {
        (self.queue == 0 || self.queue == queue.0) && self.packet == packet
    }
}

impl FaultState {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// What happens to a packet.
    pub(crate) fn packet(&self, queue: QueueId, packet: u64) -> Option<PacketFault> {
        self.plan.faults.iter().find_map(|fault| match *fault {
            Fault::Hang(at) if at.hits(queue, packet) => Some(PacketFault::Hang),
            Fault::QueueError { queue: number, packet: index, status } => {
                let hit = (number == 0 || number == queue.0) && index == packet;
                hit.then_some(PacketFault::Error(status))
            }
            _ => None,
        })
    }

    /// What happens to a packet's completion.
    pub(crate) fn completion(&self, queue: QueueId, packet: u64) -> Delivery {
        let mut delivery = Delivery::default();
        for fault in &self.plan.faults {
            match *fault {
                Fault::LoseCompletion(at) if at.hits(queue, packet) => delivery.lose = true,
                Fault::DelayCompletion(at) if at.hits(queue, packet) => {
                    delivery.late_ticks = at.micros * (TICKS_PER_SECOND / 1_000_000);
                }
                Fault::ReorderCompletion(at) if at.hits(queue, packet) => delivery.after_next = true,
                _ => {}
            }
        }
        delivery
    }

    /// Whether the queue being created fails.
    pub(crate) fn queue_fails(&self) -> bool {
        let number = self.queues.fetch_add(1, Ordering::Relaxed) + 1;
        self.plan.faults.contains(&Fault::FailQueue(number))
    }

    /// Whether the allocation being made fails.
    pub(crate) fn allocation_fails(&self) -> bool {
        let number = self.allocations.fetch_add(1, Ordering::Relaxed) + 1;
        self.plan.faults.contains(&Fault::FailAllocation(number))
    }

    /// What is left of trace buffers.
    pub(crate) fn trace_bytes(&self) -> Option<u64> {
        self.plan.faults.iter().find_map(|fault| match fault {
            Fault::TraceBytes(bytes) => Some(*bytes),
            _ => None,
        })
    }

    /// The gap in traces.
    pub(crate) fn trace_loss(&self) -> Option<TraceLoss> {
        self.plan.faults.iter().find_map(|fault| match fault {
            Fault::LoseTrace(loss) => Some(*loss),
            _ => None,
        })
    }

    /// A thread-trace status as it is shown.
    pub(crate) fn status(&self, xcc: usize, se: usize, status: u32) -> u32 {
        self.plan.faults.iter().fold(status, |shown, fault| match fault {
            Fault::LieStatus(lie) if (usize::from(lie.xcc), usize::from(lie.se)) == (xcc, se) => {
                shown & !lie.clear | lie.set
            }
            _ => shown,
        })
    }

    /// Units that are missing.
    pub(crate) fn harvested(&self) -> impl Iterator<Item = Harvest> {
        self.plan.faults.iter().filter_map(|fault| match fault {
            Fault::Harvest(harvest) => Some(*harvest),
            _ => None,
        })
    }
}
