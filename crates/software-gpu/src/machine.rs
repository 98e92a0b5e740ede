//! The device as its queues use it: everything they share, behind one lock, and what needs none.
//!
//! The lock is held while waves are placed and while command buffers run, never while memory that could fault is
//! written: those writes are collected and done afterwards.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use wavescope_pm4::{BlockId, RegisterMap};

use crate::counters::Monitor;
use crate::fault::FaultState;
use crate::kernel::{DESCRIPTOR_BYTES, Descriptor, Needs};
use crate::memory::{Memory, MemoryFault};
use crate::place::{GRAIN, Launch, Lifetimes, Placed, Placer, Wave};
use crate::pm4::{Cache, Command, CommandFault, Context, Outcome, RegisterFile, Roles, Run, Stores, gates};
use crate::queue::KernelDispatch;
use crate::signal::Span;
use crate::sync::lock;
use crate::trace::{DispatchRegisters, Output, Traces};
use crate::walk::{Dispatch, End, Kernels, Timed};
use crate::{
    DeviceConfig, DeviceOptions, DispatchTruth, Error, Host, PathTruth, QueueFault, QueueId, Truth,
    TruthSink, WalkTruth, WaveTruth,
};

/// What a queue keeps of the device's state for itself.
#[derive(Debug, Default)]
pub(crate) struct QueueRegisters {
    context: Context,
    cache: Cache,
    stores: Stores,
}

/// A dispatch as it came from a queue.
pub(crate) struct Submission<'a> {
    pub(crate) queue: QueueId,
    /// Index of the packet, and where it lies.
    pub(crate) packet: u64,
    pub(crate) address: u64,
    pub(crate) dispatch: &'a KernelDispatch,
    pub(crate) order: Order,
}

/// When a kernel may begin, seen from its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Cycle at which the last wave of the queue's kernel before had started: kernels are launched in order.
    pub(crate) after: u64,
    /// A tick at which the packet was waiting for that one's launch alone, if it was seen to. It is launched as if seen
    /// then, whatever time the model took since; nobody had seen anything later when it was submitted.
    pub(crate) waiting: Option<u64>,
}

/// A kernel that is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    pub(crate) span: Span,
    /// Cycle at which its last wave starts.
    pub(crate) whole: u64,
}

/// State under the lock.
struct Core {
    kernels: Kernels,
    placer: Placer,
    registers: RegisterFile,
    monitor: Monitor,
    traces: Traces,
    reported: HashSet<(BlockId, u32)>,
    dispatches: u64,
    waves: Vec<Wave>,
    /// Up to this cycle somebody has looked: counters, traces, or the placing of waves. Nothing new may begin before it.
    settled: u64,
}

/// Cycles between a dispatch's arrival and its first possible wave.
const LAUNCH_LATENCY: u64 = 64;

/// Room for waves that is kept between dispatches.
const KEPT_WAVES: usize = 1 << 16;

/// See the module.
pub(crate) struct Machine {
    config: DeviceConfig,
    roles: Roles,
    host: Arc<dyn Host>,
    memory: Memory,
    truth: Option<Arc<dyn TruthSink>>,
    faults: FaultState,
    core: Mutex<Core>,
}

impl Machine {
    pub(crate) fn new(
        mut config: DeviceConfig,
        host: Arc<dyn Host>,
        options: DeviceOptions,
    ) -> Result<Self, Error> {
        let DeviceOptions { truth, faults, seed, outcomes } = options;
        let faults = FaultState::new(faults);
        config.harvest.extend(faults.harvested());
        config.validate()?;
        let placer = Placer::new(&config, seed);
        if !placer.chip().every_xcc_works() {
            return Err(Error::Geometry("an XCC without a compute unit"));
        }
        let core = Core {
            kernels: Kernels::new(config.instruction_set(), seed, outcomes),
            registers: RegisterFile::new(),
            monitor: Monitor::new(&config, placer.chip()),
            traces: Traces::new(&config),
            reported: HashSet::new(),
            dispatches: 0,
            waves: Vec::new(),
            settled: 0,
            placer,
        };
        let roles = Roles::new(RegisterMap::new(config.target, config.bases));
        let memory = Memory::new(Arc::clone(&host));
        Ok(Self { config, roles, host, memory, truth, faults, core: Mutex::new(core) })
    }

    pub(crate) fn config(&self) -> &DeviceConfig {
        &self.config
    }

    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn faults(&self) -> &FaultState {
        &self.faults
    }

    /// Makes the truth readable, before a completion tells anyone to look.
    pub(crate) fn flush_truth(&self) {
        if let Some(truth) = &self.truth {
            truth.flush();
        }
    }

    /// Launches a kernel: its waves get their places, now and in the future.
    pub(crate) fn launch(
        &self,
        submission: &Submission<'_>,
        registers: &QueueRegisters,
    ) -> Result<Launched, QueueFault> {
        let dispatch = submission.dispatch;
        let invalid = QueueFault::InvalidDispatch { index: submission.packet };
        if !dispatch.geometry.is_valid() {
            return Err(invalid);
        }
        let bytes = self.memory.load_bytes::<DESCRIPTOR_BYTES>(dispatch.kernel_object)?;
        let descriptor = Descriptor::parse(dispatch.kernel_object, &bytes);
        let needs = Needs::new(&self.config, &descriptor, dispatch.group_segment_bytes);
        let mut guard = lock(&self.core);
        let core = &mut *guard;
        let Order { after, waiting } = submission.order;
        let soonest = self.soonest_start(self.host.clock());
        let waiting = waiting.map(|tick| self.soonest_start(tick));
        let start = core.start(waiting, soonest).max(after);
        core.waves.clear();
        let launch = Launch { dispatch: core.dispatches + 1, geometry: dispatch.geometry, needs, start };
        let mut walks = core.kernels.dispatch(descriptor.entry, GRAIN as u32, &self.memory);
        let placed = core.placer.place(&launch, &mut walks, &mut core.waves).ok_or(invalid)?;
        let walks = walks.finish();
        if let Some(truth) = &self.truth {
            let device = self.config.device;
            for (path, instructions) in core.kernels.take_new_paths() {
                truth.record(&Truth::Path(PathTruth { device, path, instructions }));
            }
        }
        core.dispatches += 1;
        core.settled = core.settled.max(placed.launched);
        self.record(core, submission, &placed, &walks);
        let present = placed.start.min(soonest);
        let outputs = self.observe(core, &descriptor, submission, (&placed, &walks), registers, present);
        core.waves.shrink_to(KEPT_WAVES);
        drop(guard);
        self.write_outputs(outputs)?;
        Ok(Launched { span: self.span(&placed), whole: placed.launched })
    }

    /// First cycle at which a wave of a packet could start that is seen at this tick.
    fn soonest_start(&self, tick: u64) -> u64 {
        let seen = tick * self.config.cycles_per_tick();
        seen.next_multiple_of(GRAIN) + LAUNCH_LATENCY
    }

    /// Start and end of a dispatch in ticks; the end is rounded up, so that no wave outlives its kernel.
    fn span(&self, placed: &Placed) -> Span {
        let cycles = self.config.cycles_per_tick();
        Span { start: placed.start / cycles, end: placed.end.div_ceil(cycles) }
    }

    fn record(&self, core: &Core, submission: &Submission<'_>, placed: &Placed, walks: &[Arc<Timed>]) {
        let Some(truth) = &self.truth else { return };
        let (device, dispatch) = (self.config.device, core.dispatches);
        truth.record(&Truth::Dispatch(DispatchTruth {
            device,
            dispatch,
            queue: submission.queue.0,
            packet: submission.packet,
            kernel_object: submission.dispatch.kernel_object,
            grid: submission.dispatch.geometry.grid,
            workgroup: submission.dispatch.geometry.workgroup,
            workgroups: placed.workgroups,
            waves: placed.waves,
            start: placed.start,
            end: placed.end,
        }));
        for (walk, timed) in (0..).zip(walks) {
            let stopped = match timed.path.end {
                End::Program => None,
                End::Stopped { pc, stop } => Some((pc, stop)),
            };
            let (instructions, path) = (timed.counts, timed.path_number);
            truth.record(&Truth::Walk(WalkTruth { device, dispatch, walk, instructions, stopped, path }));
        }
        let chip = core.placer.chip();
        for wave in &core.waves {
            let position = chip.position(wave.place);
            truth.record(&Truth::Wave(WaveTruth {
                device,
                dispatch,
                workgroup: wave.workgroup,
                xcc: position.xcc,
                se: position.se,
                sa: position.sa,
                cu: chip.compute_unit(wave.place, wave.simd),
                simd: wave.simd,
                slot: wave.slot,
                start: wave.start,
                end: wave.end,
                lanes: wave.lanes,
                walk: wave.walk,
            }));
        }
    }

    /// Shows the dispatch to counters and traces. Where they are brought forward, then up to `present`: the dispatch itself
    /// may begin later than what other queues do next.
    fn observe(
        &self,
        core: &mut Core,
        descriptor: &Descriptor,
        submission: &Submission<'_>,
        (placed, walks): (&Placed, &[Arc<Timed>]),
        registers: &QueueRegisters,
        present: u64,
    ) -> Vec<Output> {
        let counted = registers.context.perfcount != 0;
        let watched = core.traces.any_on();
        core.monitor.launch(&core.waves, walks, (placed.start, placed.end), counted, watched);
        if core.monitor.wants_sweep() {
            let gates = || gates(&self.config, &self.roles, &core.registers);
            core.monitor.sync(present, core.placer.chip(), gates);
        }
        if !core.traces.any_on() {
            return Vec::new();
        }
        let registers = DispatchRegisters {
            entry: descriptor.entry,
            packet_address: submission.address,
            workgroup: submission.dispatch.geometry.workgroup,
            rsrc: descriptor.rsrc,
        };
        core.traces.launch(placed.start, &registers, &core.waves, walks, core.placer.chip());
        core.traces.advance(present);
        core.traces.take_outputs()
    }

    /// Finds or compiles a command buffer.
    pub(crate) fn begin(
        &self,
        address: u64,
        dwords: u32,
        registers: &mut QueueRegisters,
    ) -> Result<Run, MemoryFault> {
        let all = u8::MAX >> (8 - self.config.xcc);
        registers.cache.begin(&self.memory, &self.roles, all, address, dwords)
    }

    /// Goes on with a command buffer. `idle`: no kernel of the queue is in flight.
    pub(crate) fn execute(
        &self,
        run: &mut Run,
        registers: &mut QueueRegisters,
        idle: bool,
    ) -> Result<Outcome, CommandFault> {
        let mut guard = lock(&self.core);
        let core = &mut *guard;
        let tick = self.host.clock();
        core.settled = core.settled.max(tick * self.config.cycles_per_tick());
        let mut command = Command {
            config: &self.config,
            roles: &self.roles,
            chip: core.placer.chip(),
            memory: &self.memory,
            faults: &self.faults,
            registers: &mut core.registers,
            monitor: &mut core.monitor,
            traces: &mut core.traces,
            reported: &mut core.reported,
            truth: self.truth.as_deref(),
            context: &mut registers.context,
            stores: &mut registers.stores,
            tick,
            idle,
        };
        let outcome = command.run(run);
        let outputs = core.traces.take_outputs();
        drop(guard);
        self.write_outputs(outputs)?;
        registers.stores.flush(&self.memory)?;
        outcome
    }

    fn write_outputs(&self, outputs: Vec<Output>) -> Result<(), MemoryFault> {
        outputs.into_iter().try_for_each(|output| self.memory.store_dwords(output.address, &output.dwords))
    }
}

impl Core {
    /// First cycle at which a kernel's waves may start: `soonest`, if its packet is seen only now, and from `waiting` on, if
    /// it was before.
    fn start(&self, waiting: Option<u64>, soonest: u64) -> u64 {
        waiting.map_or(soonest, |waiting| soonest.min(waiting.max(self.settled)))
    }
}

/// A wave lives as long as its walk, where there is a program.
impl Lifetimes for Dispatch<'_> {
    fn of_group(&mut self, workgroup: u64, waves: u32, waves_of_simd: u32) -> (u32, Option<u64>) {
        let (walk, timed) = self.group(workgroup, waves, waves_of_simd);
        (walk, (!timed.path.steps.is_empty()).then(|| timed.cycles.into()))
    }
}
