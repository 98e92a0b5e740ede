//! The worker that copies traces out of the slot and delivers them.
//!
//! It copies first, tells the owner, and then calls the client: the next dispatch runs meanwhile.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wavescope_aql_profile::{EngineData, Memory, Status, TraceReadback};
use wavescope_core::actor::{Actor, Reply};
use wavescope_core::{ChunkFlags, ContextId, LossReason, TraceChunk};

use super::crew::Delivery;
use super::lane::{Installed, Lane, Traced, parts};
use super::tally::Tally;
use crate::owner::Message;
use crate::{DeviceError, TraceId};

/// What the worker is told.
pub(super) enum Job {
    /// A lane's instance, before its first trace.
    Install { place: usize, installed: Installed },
    /// A trace ended, and its data may be read unless it was lost.
    Ended { trace: TraceId, outcome: Result<(), LossReason> },
    /// Answered when everything before was delivered.
    Flush(Reply<()>),
}

/// The copy worker of one service.
pub(super) struct Worker {
    context: ContextId,
    lanes: Arc<Vec<Lane>>,
    instances: Vec<Option<Installed>>,
    delivery: Delivery,
    tally: Arc<Tally>,
}

impl Installed {
    /// Copies every engine's data, with the header that a decoder expects in front.
    fn copy(&self) -> Result<(TraceReadback, Vec<Vec<u8>>), DeviceError> {
        let readback = self.instance.readback();
        let data = self.instance.data().first().map_or(0, |(address, _)| *address);
        let copies = readback.engines.iter().map(|engine| self.copy_engine(data, engine));
        let copies = copies.collect::<Result<_, _>>()?;
        Ok((readback, copies))
    }

    fn copy_engine(&self, data: u64, engine: &EngineData) -> Result<Vec<u8>, DeviceError> {
        let header = engine.header.map(u64::to_le_bytes);
        let header = header.as_ref().map_or(&[][..], |header| header);
        let mut bytes = vec![0; header.len() + engine.bytes as usize];
        bytes[..header.len()].copy_from_slice(header);
        self.memory.read_slot(data + engine.offset, &mut bytes[header.len()..])?;
        Ok(bytes)
    }

    /// The next trace finds its control record as if it were the first.
    fn clear(&self) {
        let (address, bytes) = self.instance.control();
        self.memory.store(address, &vec![0; bytes as usize]);
    }
}

impl Worker {
    pub(super) fn new(
        context: ContextId,
        lanes: Arc<Vec<Lane>>,
        delivery: Delivery,
        tally: Arc<Tally>,
    ) -> Self {
        let instances = lanes.iter().map(|_| None).collect();
        Self { context, lanes, instances, delivery, tally }
    }

    fn ended(&mut self, trace: TraceId, outcome: Result<(), LossReason>) {
        let (place, slot) = parts(trace.token);
        let Some(lane) = self.lanes.get(place) else { return };
        let Some(traced) = lane.take(slot) else {
            tracing::error!(%trace, "a trace ended that was not in flight");
            if outcome.is_ok() {
                lane.tell(Message::SlotCopied { trace });
            }
            return;
        };
        let chunks = match outcome {
            Ok(()) => {
                let copied = self.copy(place);
                // The slot may be written again; the client is called after that.
                lane.tell(Message::SlotCopied { trace });
                copied.map(|(readback, data)| {
                    self.tally.delivered();
                    self.chunks(&traced, &readback, data)
                })
            }
            Err(reason) => {
                tracing::warn!(%trace, ?reason, "trace lost");
                if reason.gpu_may_still_write() {
                    self.tally.hung();
                }
                None
            }
        };
        let chunks = chunks.unwrap_or_else(|| {
            self.tally.lost();
            vec![self.lost_chunk(&traced)]
        });
        chunks.into_iter().for_each(|chunk| self.deliver(chunk));
    }

    /// Data and sizes of the trace in the slot; `None`, with a log, if they cannot be read.
    fn copy(&self, place: usize) -> Option<(TraceReadback, Vec<Vec<u8>>)> {
        let Some(installed) = self.instances.get(place).and_then(Option::as_ref) else {
            tracing::error!("no packet program instance to read");
            return None;
        };
        let copied = installed.copy();
        installed.clear();
        copied.inspect_err(|error| tracing::error!(%error, "output slot not read")).ok()
    }

    fn chunks(&self, traced: &Traced, readback: &TraceReadback, data: Vec<Vec<u8>>) -> Vec<TraceChunk> {
        // Where the status names no engine it may be any of them.
        let none_is_full = !readback.engines.iter().any(|engine| engine.full);
        let any_may_be_full = readback.status == Status::OUT_OF_RESOURCES && none_is_full;
        let engines = readback.engines.iter().zip(data).enumerate();
        let chunk = |(index, (engine, data)): (usize, (&EngineData, Vec<u8>))| {
            let gpu_buffer_full = engine.full || any_may_be_full;
            let flags = ChunkFlags { end: true, gpu_buffer_full, ..ChunkFlags::default() };
            let empty = self.chunk(traced, flags);
            TraceChunk { shader_engine: engine.se, index: index as u64, data, ..empty }
        };
        engines.map(chunk).collect()
    }

    fn lost_chunk(&self, traced: &Traced) -> TraceChunk {
        self.chunk(traced, ChunkFlags { end: true, lost: true, ..ChunkFlags::default() })
    }

    fn chunk(&self, traced: &Traced, flags: ChunkFlags) -> TraceChunk {
        TraceChunk {
            context: self.context,
            agent: traced.agent,
            dispatch: traced.dispatch,
            shader_engine: 0,
            index: 0,
            read_offset: 0,
            user_data: traced.user_data,
            flags,
            data: Vec::new(),
        }
    }

    fn deliver(&self, chunk: TraceChunk) {
        match &self.delivery {
            Delivery::Stream(sink) => {
                sink.send(chunk);
            }
            Delivery::Callback(callback) => {
                // A client's panic must not end the worker: traces of other dispatches are still to be copied.
                if catch_unwind(AssertUnwindSafe(|| callback(chunk))).is_err() {
                    tracing::error!(context = %self.context, "the trace callback panicked");
                }
            }
        }
    }
}

impl Actor for Worker {
    type Message = Job;
    const NAME: &'static str = "wavescope-copy";

    fn handle(&mut self, job: Job) -> ControlFlow<()> {
        match job {
            Job::Install { place, installed } => {
                if let Some(slot) = self.instances.get_mut(place) {
                    *slot = Some(installed);
                }
            }
            Job::Ended { trace, outcome } => self.ended(trace, outcome),
            Job::Flush(reply) => reply.send(()),
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Worker {
    /// Everything before was handled, so what was lost is known.
    fn drop(&mut self) {
        if !self.tally.is_hung() {
            return;
        }
        tracing::error!(context = %self.context, "the GPU may still use packets of this context: kept for good");
        self.lanes.iter().for_each(Lane::leak);
        std::mem::forget(std::mem::take(&mut self.instances));
    }
}
