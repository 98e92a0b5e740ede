//! Kernels that somebody traces, and what the application's signals need then.

use std::sync::Arc;

use wavescope_core::{AqlPacket, Dispatch, LossReason, Outcome};

use super::Rewriter;
use crate::correlation::{self, CorrelationIds};
use crate::device::Signal;
use crate::flight::{COUNTER_START, Loose};
use crate::kernel_trace::{Traced, TracedBy, TracedKernel};
use crate::packets::launch_barrier;
use crate::serializer::RunId;

impl Rewriter<'_> {
    /// The record of a kernel, made before any callback runs; `None` if nobody traces.
    pub(super) fn record(&mut self, dispatch: &Dispatch) -> Option<Traced> {
        if self.snapshot.tracers.is_empty() {
            return None;
        }
        let kernel = TracedKernel {
            dispatch: *dispatch,
            correlation: CorrelationIds { internal: correlation::internal(), external: 0 },
            enqueued_ns: self.now_ns(),
            serialized: false,
            blind: self.queue.agent.is_blind(),
        };
        let by = |tracer: &Arc<_>| TracedBy::new(tracer);
        Traced::new(kernel, self.snapshot.tracers.iter().map(by))
    }

    /// Emits a kernel that is traced and not measured.
    pub(super) fn only_traced(
        &mut self,
        packet: &AqlPacket,
        dispatch: &Dispatch,
        carrier: Signal,
        run: Option<RunId>,
        traced: Traced,
    ) {
        let forwarded = packet.completion_signal();
        let mut launched = i64::MAX;
        if forwarded != 0 {
            if self.queue.ensure_launches().is_none() {
                // The kernel keeps its signal, and nobody hears when it ends.
                traced.landed(Outcome::Lost(LossReason::Unreadable));
                self.scratch.carriers.push(carrier);
                return self.declined(packet, run);
            }
            self.queue.agent.times.forward(forwarded, dispatch.id, carrier);
            self.scratch.forwards.push((carrier, forwarded));
            launched = COUNTER_START - (self.scratch.launches + 1);
        }
        let mut kernel = *packet;
        kernel.set_completion_signal(carrier.0);
        self.unordered(&kernel, run);
        let enqueued_ns = self.now_ns();
        let covered = run.is_some();
        let (number, dispatch) = (0, dispatch.id);
        self.scratch.loose.push(Loose {
            number,
            carrier,
            dispatch,
            forwarded,
            launched,
            enqueued_ns,
            covered,
            traced,
        });
    }

    /// Lets the application's signals fall with the kernels that were emitted.
    pub(super) fn forward(&mut self) {
        if self.scratch.forwards.is_empty() {
            return;
        }
        // It is there: the kernels in question were only taken with it.
        let Some(launches) = self.queue.ensure_launches() else { return };
        let forward = |(carrier, signal): (Signal, u64)| launch_barrier(carrier.0, signal);
        self.scratch.out.extend(self.scratch.forwards.drain(..).map(forward));
        self.scratch.out.push(launch_barrier(0, launches.0));
        self.scratch.launches += 1;
    }
}
