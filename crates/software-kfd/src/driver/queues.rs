//! Queues: compute queues over the model, SDMA queues over threads of our own.

use std::collections::BTreeMap;

use wavescope_software_gpu::{Doorbell as ModelDoorbell, Queue, QueueConfig, QueueId};

use super::error::number;
use super::exceptions::Report;
use super::gpu::{Doorbell, Gpu};
use super::sdma;
use crate::abi::kfd::{CreateQueue, queue_type};
use crate::errno::{Answer, Errno};

/// Bytes of an AQL packet.
const PACKET_BYTES: u32 = 64;

/// One queue of the process.
struct Entry {
    gpu: usize,
    doorbell: Doorbell,
    kind: Kind,
}

enum Kind {
    Compute {
        config: QueueConfig,
        save_area: u64,
        /// None while the runtime has the queue switched off.
        queue: Option<Queue>,
        has_gws: bool,
    },
    Sdma {
        _queue: sdma::Queue,
    },
}

/// All queues of the process.
#[derive(Default)]
pub(super) struct Queues {
    entries: BTreeMap<u32, Entry>,
}

impl Queues {
    /// Creates a queue; fills in its id and where its doorbell lies.
    pub(super) fn create(&mut self, gpu: &Gpu, args: &mut CreateQueue) -> Answer {
        if !args.ring_bytes.is_power_of_two() || args.ring == 0 {
            return Err(Errno(libc::EINVAL));
        }
        let doorbell = gpu.doorbells.take()?;
        gpu.host.watch().open(doorbell.word());
        let kind = match args.queue_type {
            queue_type::COMPUTE_AQL => create_compute(gpu, args, doorbell),
            queue_type::SDMA | queue_type::SDMA_XGMI | queue_type::SDMA_BY_ENGINE => {
                self.create_sdma(gpu, args, doorbell)
            }
            _ => Err(Errno(libc::EINVAL)),
        };
        let kind = kind.inspect_err(|_| gpu.doorbells.release(doorbell))?;
        // As in the kernel (`find_available_queue_slot`): the lowest free number.
        let id = (0..).find(|id| !self.entries.contains_key(id)).unwrap_or(0);
        self.entries.insert(id, Entry { gpu: gpu.index, doorbell, kind });
        args.queue_id = id;
        args.doorbell_offset = doorbell.offset;
        Ok(())
    }

    fn create_sdma(&self, gpu: &Gpu, args: &CreateQueue, doorbell: Doorbell) -> Result<Kind, Errno> {
        let by_engine = args.queue_type == queue_type::SDMA_BY_ENGINE;
        if by_engine && args.sdma_engine >= gpu.node.sdma_engines {
            return Err(Errno(libc::EINVAL));
        }
        let is_sdma = |entry: &&Entry| entry.gpu == gpu.index && matches!(entry.kind, Kind::Sdma { .. });
        let limit = gpu.node.sdma_engines * gpu.node.sdma_queues_per_engine;
        if self.entries.values().filter(is_sdma).count() as u32 >= limit {
            // `allocate_sdma_queue`.
            return Err(Errno(libc::ENOMEM));
        }
        let config = sdma::Config {
            ring: args.ring,
            ring_bytes: u64::from(args.ring_bytes),
            read_pointer: args.read_pointer,
            doorbell,
            gfx_major: gpu.node.agent.target.major,
        };
        let queue = sdma::Queue::start(config, gpu.host.clone()).map_err(|_| Errno(libc::EAGAIN))?;
        Ok(Kind::Sdma { _queue: queue })
    }

    /// Stops and removes a queue.
    pub(super) fn destroy(&mut self, gpus: &[Gpu], id: u32) -> Answer {
        let entry = self.entries.remove(&id).ok_or(Errno(libc::EINVAL))?;
        let Entry { gpu, doorbell, kind } = entry;
        if let Kind::Compute { queue: Some(queue), .. } = &kind {
            gpus[gpu].host.forget(queue.id());
        }
        gpus[gpu].host.watch().close(doorbell.word());
        // Waits for the consumer, which takes nothing that this thread holds.
        drop(kind);
        gpus[gpu].doorbells.release(doorbell);
        Ok(())
    }

    /// Switches a compute queue off (percentage 0) and on again, where it stopped.
    pub(super) fn update(&mut self, gpus: &[Gpu], id: u32, percentage: u32) -> Answer {
        let entry = self.entries.get_mut(&id).ok_or(Errno(libc::EINVAL))?;
        let gpu = &gpus[entry.gpu];
        let Kind::Compute { config, save_area, queue, .. } = &mut entry.kind else { return Ok(()) };
        match (percentage, queue.as_ref()) {
            (0, Some(running)) => {
                gpu.host.forget(running.id());
                gpu.host.watch().close(entry.doorbell.word());
                *queue = None;
            }
            (1.., None) => {
                gpu.host.watch().open(entry.doorbell.word());
                *queue = Some(start_compute(gpu, *config, *save_area)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a queue of this id exists.
    pub(super) fn contains(&self, id: u32) -> bool {
        self.entries.contains_key(&id)
    }

    /// Gives the GPU's global wave sync to a queue, or takes it back: one queue of a GPU has all of it.
    pub(super) fn set_gws(&mut self, gpus: &[Gpu], id: u32, count: u32) -> Answer {
        let gpu = self.entries.get(&id).ok_or(Errno(libc::EINVAL))?.gpu;
        if gpus[gpu].node.gws == 0 {
            return Err(Errno(libc::ENODEV));
        }
        let holds = |(other, entry): (&u32, &Entry)| {
            *other != id && entry.gpu == gpu && matches!(entry.kind, Kind::Compute { has_gws: true, .. })
        };
        if count > 0 && self.entries.iter().any(holds) {
            return Err(Errno(libc::EBUSY));
        }
        match self.entries.get_mut(&id).map(|entry| &mut entry.kind) {
            Some(Kind::Compute { has_gws, .. }) => *has_gws = count > 0,
            _ => return Err(Errno(libc::EINVAL)),
        }
        Ok(())
    }
}

fn create_compute(gpu: &Gpu, args: &CreateQueue, doorbell: Doorbell) -> Result<Kind, Errno> {
    let config = QueueConfig {
        ring: args.ring,
        packets: args.ring_bytes / PACKET_BYTES,
        write_index: args.write_pointer,
        read_index: args.read_pointer,
        doorbell: ModelDoorbell::Memory(doorbell.address),
    };
    let queue = start_compute(gpu, config, args.save_area)?;
    Ok(Kind::Compute { config, save_area: args.save_area, queue: Some(queue), has_gws: false })
}

fn start_compute(gpu: &Gpu, config: QueueConfig, save_area: u64) -> Result<Queue, Errno> {
    let queue = gpu.device.create_queue(config).map_err(|error| number(&error))?;
    let id: QueueId = queue.id();
    gpu.host.set_report(id, Report { save_area, write_index: config.write_index });
    Ok(queue)
}
