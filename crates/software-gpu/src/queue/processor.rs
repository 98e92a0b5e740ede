//! The packet processor of one queue: its consumer thread.
//!
//! Order of a packet's completion: its effects; its place in the ring is invalidated; the read index grows; then, at
//! its end, time stamps, signal value, mailbox and event. A kernel's place is given back when its waves are launched,
//! so that later packets without the barrier bit overlap with it: kernels are launched in order, each as soon as the last
//! wave of the one before has started. That holds in the device's time, whatever time the model takes: a kernel that was
//! waiting in the ring, with nothing in between to wait for, follows as soon as it was there (see `Order`). No lock is
//! held while ring or signals are written: a page that faults there stops this queue alone.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::{AqlPacket, PacketType};

use super::arrivals::Arrivals;
use super::control::{Consumer, Control};
use super::inflight::{Completion, Inflight};
use super::packet::{BarrierValue, KernelDispatch, Packet};
use super::pause::Pause;
use super::{Doorbell, QueueConfig, QueueId};
use crate::fault::PacketFault;
use crate::machine::{Launched, Machine, Order, QueueRegisters, Submission};
use crate::memory::MemoryFault;
use crate::pm4::{CommandFault, Outcome, Run};
use crate::signal::{self, Span};
use crate::{QueueFault, TICKS_PER_SECOND};

/// Bytes of an AQL packet.
const PACKET_BYTES: u64 = 64;
/// Ticks before a kernel's end at which sleeping stops and spinning begins.
const SPIN_TICKS: u64 = 10_000;

/// Ticks below which giving the processor away costs more than it saves.
const YIELD_TICKS: u64 = 200;

/// What a round came to.
enum Step {
    /// Something was done.
    Progress,
    /// Nothing to do until the doorbell rings.
    Idle,
    /// Something in memory has to change first.
    Poll,
}

/// The consumer's own state.
pub(super) struct Processor {
    pub(super) id: QueueId,
    pub(super) config: QueueConfig,
    pub(super) control: Arc<Control>,
    pub(super) machine: Arc<Machine>,
    read: u64,
    inflight: Inflight,
    registers: QueueRegisters,
    run: Option<Run>,
    begun: Option<u64>,
    before: Before,
    arrivals: Arrivals,
    pause: Pause,
    dead: bool,
}

/// The last kernel that the queue launched, as the next one needs to know of it.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// Index behind its packet.
    next: u64,
    /// Cycle at which its last wave started.
    whole: u64,
}

impl Consumer for Processor {
    /// Whether only the doorbell can bring news; it then wakes the thread.
    type Lull = bool;

    // Once for each packet, with what it calls: a call each is a measurable part of a barrier packet's time.
    #[inline]
    fn look(&mut self) -> Option<bool> {
        match self.retire().and_then(|()| self.step()) {
            Ok(Step::Progress) => self.pause.reset(),
            Ok(Step::Idle) => return Some(matches!(self.config.doorbell, Doorbell::Rung)),
            Ok(Step::Poll) => return Some(false),
            Err(fault) => self.die(fault),
        }
        None
    }

    fn rest(&mut self, limit: u64, watched: bool) {
        let Some(due) = self.inflight.next_due() else {
            return self.pause.pass(&self.control, limit, watched, None);
        };
        let host = self.machine.host();
        if host.skip_to(due) {
            return;
        }
        let left = due.saturating_sub(host.clock());
        if left > 2 * SPIN_TICKS {
            let nanoseconds = (left - SPIN_TICKS) * (1_000_000_000 / TICKS_PER_SECOND);
            self.pause.pass(&self.control, limit, watched, Some(Duration::from_nanos(nanoseconds)));
        } else if left > YIELD_TICKS {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

impl From<MemoryFault> for QueueFault {
    fn from(fault: MemoryFault) -> Self {
        Self::Memory { address: fault.address }
    }
}

impl Processor {
    pub(super) fn new(
        id: QueueId,
        config: QueueConfig,
        control: Arc<Control>,
        machine: Arc<Machine>,
        read: u64,
    ) -> Self {
        Self {
            id,
            config,
            control,
            machine,
            read,
            inflight: Inflight::default(),
            registers: QueueRegisters::default(),
            run: None,
            begun: None,
            before: Before::default(),
            arrivals: Arrivals::default(),
            pause: Pause::default(),
            dead: false,
        }
    }

    /// The thread's work.
    pub(super) fn work(mut self) {
        let control = Arc::clone(&self.control);
        control.serve(&mut self);
    }

    fn die(&mut self, fault: QueueFault) {
        self.dead = true;
        self.inflight = Inflight::default();
        self.run = None;
        self.machine.host().queue_error(self.id, fault);
    }

    fn clock(&self) -> u64 {
        self.machine.host().clock()
    }

    /// Delivers the completions that are due.
    fn retire(&mut self) -> Result<(), QueueFault> {
        if self.inflight.next_due().is_none() {
            return Ok(());
        }
        let now = self.clock();
        while let Some(completion) = self.inflight.take_due(now) {
            self.deliver(&completion)?;
        }
        Ok(())
    }

    fn deliver(&mut self, completion: &Completion) -> Result<(), QueueFault> {
        self.machine.flush_truth();
        let (memory, host) = (self.machine.memory(), self.machine.host());
        signal::complete(memory, host, completion.signal, completion.span)?;
        let now = self.clock();
        self.inflight.completed(completion.packet, now);
        Ok(())
    }

    /// One round: at most one packet.
    #[inline]
    fn step(&mut self) -> Result<Step, QueueFault> {
        if self.dead || self.control.inactive() {
            return Ok(Step::Idle);
        }
        if self.read >= self.limit()? {
            return Ok(Step::Idle);
        }
        let address = self.address(self.read);
        let memory = self.machine.memory();
        let header = wavescope_core::PacketHeader(memory.load_header(address)?);
        if header.kind() == PacketType::INVALID {
            return Ok(Step::Poll);
        }
        if header.barrier() && self.inflight.blocks() {
            return Ok(Step::Poll);
        }
        match self.machine.faults().packet(self.id, self.read) {
            Some(PacketFault::Hang) => return Ok(Step::Poll),
            Some(PacketFault::Error(status)) => return Err(QueueFault::Injected(status)),
            None => {}
        }
        let packet = memory.load_packet(address)?;
        self.begun.get_or_insert_with(|| self.machine.host().clock());
        self.execute(&packet)
    }

    /// The doorbell's value plus one, with what the memory word says where there is one.
    fn limit(&self) -> Result<u64, QueueFault> {
        let known = self.control.limit();
        match self.config.doorbell {
            Doorbell::Rung => Ok(known),
            Doorbell::Memory(_) if self.read < known => Ok(known),
            Doorbell::Memory(address) => {
                self.control.ring(self.machine.memory().load_u64(address)?);
                Ok(self.control.limit())
            }
        }
    }

    fn address(&self, index: u64) -> u64 {
        self.config.ring + index % u64::from(self.config.packets) * PACKET_BYTES
    }

    #[inline]
    fn execute(&mut self, packet: &AqlPacket) -> Result<Step, QueueFault> {
        let signal = packet.completion_signal();
        match Packet::parse(packet) {
            Packet::Dispatch(dispatch) => self.dispatch(&dispatch, signal, packet.header().barrier()),
            Packet::BarrierAnd(signals) => {
                let passes = self.settled(&signals)? == signals.len();
                self.barrier(passes, signal)
            }
            Packet::BarrierOr(signals) => {
                let waits = signals.iter().any(|&signal| signal != 0);
                let zero = signals.iter().filter(|&&signal| signal == 0).count();
                let passes = !waits || self.settled(&signals)? > zero;
                self.barrier(passes, signal)
            }
            Packet::BarrierValue(barrier) => {
                let passes = self.value_passes(&barrier)?;
                self.barrier(passes, signal)
            }
            Packet::Commands(buffer) => {
                let run = match self.run.take() {
                    Some(run) => run,
                    None => self.machine.begin(buffer.address, buffer.dwords(), &mut self.registers)?,
                };
                self.commands(run, signal)
            }
            Packet::Invalid => Err(QueueFault::InvalidPacket { index: self.read }),
        }
    }

    fn dispatch(
        &mut self,
        dispatch: &KernelDispatch,
        signal: u64,
        barrier: bool,
    ) -> Result<Step, QueueFault> {
        let index = self.read;
        let address = self.address(index);
        let Before { next, whole } = self.before;
        let waiting = self.arrivals.take(index).filter(|_| !barrier && index == next);
        let order = Order { after: whole, waiting };
        let submission = Submission { queue: self.id, packet: index, address, dispatch, order };
        self.look_ahead();
        let Launched { span, whole } = self.machine.launch(&submission, &self.registers)?;
        self.before = Before { next: index + 1, whole };
        self.release()?;
        self.complete(index, signal, span, true)?;
        Ok(Step::Progress)
    }

    /// Notes what waits behind the packet that is being read. The clock is read last: whatever is seen here was submitted
    /// before that tick, and so was what the submitter had seen.
    // Kernels only: kept out of the path that barrier packets take.
    #[inline(never)]
    fn look_ahead(&mut self) {
        let known = self.arrivals.unknown(self.read);
        // A ring further on is the place of the packet that is being read.
        let end = self.control.limit().min(self.read.saturating_add(self.config.packets.into()));
        let until = (known..end).find(|&index| !self.is_written(index)).unwrap_or(end);
        if until > known {
            self.arrivals.note(until, self.clock());
        }
    }

    /// Whether the packet's place holds one. A place that cannot be read is for the packet's own turn to report.
    fn is_written(&self, index: u64) -> bool {
        let header = self.machine.memory().load_header(self.address(index));
        header.is_ok_and(|header| wavescope_core::PacketHeader(header).kind() != PacketType::INVALID)
    }

    fn barrier(&mut self, passes: bool, signal: u64) -> Result<Step, QueueFault> {
        if !passes {
            return Ok(Step::Poll);
        }
        self.finish(signal)?;
        Ok(Step::Progress)
    }

    /// How many of the signals are 0; a null handle counts.
    fn settled(&self, signals: &[u64]) -> Result<usize, QueueFault> {
        let mut count = 0;
        for &handle in signals {
            let done = handle == 0 || signal::value(self.machine.memory(), handle)? == 0;
            count += usize::from(done);
        }
        Ok(count)
    }

    fn value_passes(&self, barrier: &BarrierValue) -> Result<bool, QueueFault> {
        if barrier.signal == 0 {
            return Ok(true);
        }
        let value = signal::value(self.machine.memory(), barrier.signal)?;
        barrier.passes(value).ok_or(QueueFault::InvalidPacket { index: self.read })
    }

    fn commands(&mut self, mut run: Run, signal: u64) -> Result<Step, QueueFault> {
        let idle = !self.inflight.blocks();
        match self.machine.execute(&mut run, &mut self.registers, idle) {
            Ok(Outcome::Done) => {
                self.finish(signal)?;
                Ok(Step::Progress)
            }
            Ok(Outcome::Waiting) => {
                self.run = Some(run);
                Ok(Step::Poll)
            }
            Err(CommandFault::Memory(fault)) => Err(fault.into()),
            Err(CommandFault::Invalid(offset)) => {
                Err(QueueFault::InvalidCommands { index: self.read, offset })
            }
        }
    }

    /// Ends a packet that takes no time of its own.
    #[inline]
    fn finish(&mut self, signal: u64) -> Result<(), QueueFault> {
        let index = self.read;
        let end = self.clock();
        let span = Span { start: self.begun.unwrap_or(end), end };
        self.release()?;
        self.complete(index, signal, span, false)
    }

    /// Gives the packet's place in the ring back.
    fn release(&mut self) -> Result<(), QueueFault> {
        let memory = self.machine.memory();
        memory.store_header(self.address(self.read), u16::from(PacketType::INVALID.0))?;
        self.read += 1;
        memory.store_u64(self.config.read_index, self.read)?;
        self.begun = None;
        Ok(())
    }

    /// Delivers a completion, or files it for when it is due and as the fault plan wants it.
    fn complete(&mut self, packet: u64, signal: u64, span: Span, takes_time: bool) -> Result<(), QueueFault> {
        let delivery = self.machine.faults().completion(self.id, packet);
        let mut completion =
            Completion { packet, signal, span, due: span.end, after: None, blocks: takes_time };
        if delivery.lose {
            completion.signal = 0;
        }
        if delivery.late_ticks > 0 || delivery.after_next {
            // The signal is kept back; a barrier waits for the work only.
            if takes_time {
                self.inflight.push(Completion { signal: 0, ..completion });
            }
            completion.blocks = false;
            completion.due += delivery.late_ticks;
            completion.after = delivery.after_next.then_some(packet + 1);
            self.inflight.push(completion);
        } else if takes_time {
            self.inflight.push(completion);
        } else {
            self.deliver(&completion)?;
        }
        Ok(())
    }
}
