//! A batch on its way: what the GPU may still touch, and how to wait for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hsa_sys::hsa_amd_profiling_dispatch_time_t;
use wavescope_core::AqlPacket;

use crate::api::call;
use crate::application::Reference;
use crate::{Batch, Buffer, Error, Gpu, Signal};

/// When a kernel ran, in nanoseconds of the runtime's system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchTimes {
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// A submitted batch. Dropped before its dispatches completed, it leaks their arguments and signals on purpose: the GPU
/// may still use them.
#[derive(Debug)]
pub struct Submission {
    in_flight: Option<InFlight>,
}

#[derive(Debug)]
struct InFlight {
    reference: Arc<Reference>,
    gpu: Gpu,
    /// One per dispatch, or one for all that counts them down.
    signals: Vec<Signal>,
    /// Freed when everything completed.
    _arguments: Option<Buffer>,
}

impl Submission {
    /// Makes signals, arguments and packets of a batch.
    pub(crate) fn prepare(
        reference: &Arc<Reference>,
        gpu: &Gpu,
        batch: &Batch,
    ) -> Result<(Self, Vec<AqlPacket>), Error> {
        let launches = batch.launches().count();
        let signals = match (launches, batch.has_own_signals()) {
            (0, _) => Vec::new(),
            (_, false) => vec![Signal::create(reference, launches as i64)?],
            (_, true) => (0..launches).map(|_| Signal::create(reference, 1)).collect::<Result<_, _>>()?,
        };
        let stride = batch.argument_stride();
        let arguments = arguments(reference, gpu, batch, launches * stride, stride)?;
        let base = arguments.as_ref().map_or(0, Buffer::address);
        let packets = batch.packets(|launch| {
            let signal = &signals[if signals.len() == 1 { 0 } else { launch }];
            (base + (launch * stride) as u64, signal.handle())
        });
        let in_flight =
            InFlight { reference: Arc::clone(reference), gpu: gpu.clone(), signals, _arguments: arguments };
        Ok((Self { in_flight: Some(in_flight) }, packets))
    }

    /// Waits until every dispatch of the batch has completed and returns when they ran: one entry per dispatch with
    /// signals of their own, else one for the last to complete.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; arguments and signals then leak. [`Error::Call`] if the runtime knows no times.
    pub fn wait(mut self, timeout: Duration) -> Result<Vec<DispatchTimes>, Error> {
        let start = Instant::now();
        let Some(in_flight) = &self.in_flight else { return Ok(Vec::new()) };
        for signal in &in_flight.signals {
            signal.wait_below(1, timeout.saturating_sub(start.elapsed()))?;
        }
        let times = in_flight.signals.iter().map(|signal| in_flight.times(signal)).collect();
        self.in_flight = None;
        times
    }

    /// Whether every dispatch has completed.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn is_complete(&self) -> Result<bool, Error> {
        let Some(in_flight) = &self.in_flight else { return Ok(true) };
        in_flight.signals.iter().try_fold(true, |complete, signal| Ok(complete && signal.load()? <= 0))
    }
}

impl InFlight {
    fn times(&self, signal: &Signal) -> Result<DispatchTimes, Error> {
        let mut times = hsa_amd_profiling_dispatch_time_t::zeroed();
        call!(
            self.reference.api,
            amd_ext_.hsa_amd_profiling_get_dispatch_time_fn(
                self.gpu.agent(),
                signal.handle(),
                &raw mut times
            )
        )?;
        Ok(DispatchTimes { start_ns: times.start, end_ns: times.end })
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        if !self.is_complete().unwrap_or(false) {
            tracing::warn!("a submission was dropped in flight; its arguments and signals stay");
            std::mem::forget(self.in_flight.take());
        }
    }
}

/// Argument segments of a batch, `stride` bytes apart.
fn arguments(
    reference: &Arc<Reference>,
    gpu: &Gpu,
    batch: &Batch,
    bytes: usize,
    stride: usize,
) -> Result<Option<Buffer>, Error> {
    if bytes == 0 {
        return Ok(None);
    }
    let mut buffer = Buffer::for_arguments(reference, gpu, bytes)?;
    for (place, arguments) in buffer.bytes_mut().chunks_exact_mut(stride).zip(batch.argument_bytes()) {
        place[..arguments.len()].copy_from_slice(arguments);
    }
    Ok(Some(buffer))
}
