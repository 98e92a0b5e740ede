//! Packet programs of the real aqlprofile library, and ours, executed by the model and read by each other.
//!
//! Both kinds are made over the same memory, so that what one's packets write the other reads.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use hsa_sys::*;
use wavescope_aql_profile::{
    AgentShape, AllocationRequest, Builtin, CounterInstance, Event, Memory, Native, PacketPrograms, Status,
    TraceConfig, TraceInstance, TraceParameter,
};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType, Topology};
use wavescope_pm4::BlockId;
use wavescope_workload::{Batch, Launch};

use crate::rig::{Rig, SOON, TARGETS, hsa, on_runtime};

/// `SQ_WAVES` on every target here.
const SQ_WAVES: Event = Event::new(BlockId::SQ, 4);

/// Memory of the first GPU from the runtime's pools. Kept to the end of the process.
struct Pools {
    table: *const HsaApiTable,
    gpu: hsa_agent_t,
    cpu: hsa_agent_t,
    host: hsa_amd_memory_pool_t,
    device: hsa_amd_memory_pool_t,
    /// Handed out so far, in order.
    made: Mutex<Vec<(u64, u64)>>,
    /// Of another memory, to be handed out again.
    again: Mutex<Vec<(u64, u64)>>,
}

// SAFETY: the table is read only, and the runtime's functions may be called from any thread.
unsafe impl Send for Pools {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pools {}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    In,
    Out,
}

fn agents(rig: &Rig) -> Vec<hsa_agent_t> {
    unsafe extern "C-unwind" fn collect(agent: hsa_agent_t, list: *mut c_void) -> hsa_status_t {
        // SAFETY: `list` is the vector below, borrowed by nobody else during the call.
        unsafe { &mut *list.cast::<Vec<hsa_agent_t>>() }.push(agent);
        HSA_STATUS_SUCCESS
    }
    let mut list = Vec::<hsa_agent_t>::new();
    hsa!(rig, core_.hsa_iterate_agents_fn(Some(collect), (&raw mut list).cast()));
    list
}

fn first_pool(rig: &Rig, agent: hsa_agent_t) -> hsa_amd_memory_pool_t {
    unsafe extern "C-unwind" fn first(pool: hsa_amd_memory_pool_t, found: *mut c_void) -> hsa_status_t {
        // SAFETY: `found` is the option below, borrowed by nobody else during the call.
        unsafe { &mut *found.cast::<Option<hsa_amd_memory_pool_t>>() }.get_or_insert(pool);
        HSA_STATUS_SUCCESS
    }
    let mut pool: Option<hsa_amd_memory_pool_t> = None;
    hsa!(rig, amd_ext_.hsa_amd_agent_iterate_memory_pools_fn(agent, Some(first), (&raw mut pool).cast()));
    pool.unwrap()
}

impl Pools {
    fn new(rig: &Rig) -> Arc<Self> {
        let gpu = rig.gpu().agent();
        let cpu = agents(rig)[0];
        Arc::new(Self {
            table: rig.table,
            gpu,
            cpu,
            host: first_pool(rig, cpu),
            device: first_pool(rig, gpu),
            made: Mutex::default(),
            again: Mutex::default(),
        })
    }

    /// Copies by a copy engine. `hsa_memory_copy` is no way to device memory: ROCr does that with a kernel, whose code the
    /// model only pretends to run.
    fn copy(&self, address: u64, bytes: usize, with: impl FnOnce(&mut [u8], &dyn Fn(Way))) {
        let mut staging = std::ptr::null_mut();
        hsa!(self, amd_ext_.hsa_amd_memory_pool_allocate_fn(self.host, bytes, 0, &raw mut staging));
        let none = std::ptr::null();
        hsa!(self, amd_ext_.hsa_amd_agents_allow_access_fn(1, &raw const self.gpu, none, staging));
        let mut done = hsa_signal_t { handle: 0 };
        hsa!(self, core_.hsa_signal_create_fn(1, 0, std::ptr::null(), &raw mut done));
        let device = address as *mut c_void;
        let run = |way| {
            let (to, to_agent, from, from_agent) = match way {
                Way::In => (device, self.gpu, staging, self.cpu),
                Way::Out => (staging, self.cpu, device, self.gpu),
            };
            let none = std::ptr::null();
            hsa!(
                self,
                amd_ext_.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, bytes, 0, none, done)
            );
            let nanoseconds = SOON.as_nanos() as u64;
            let (condition, state) = (HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED);
            // SAFETY: the table lives as long as the runtime.
            let core = unsafe { (*self.table).core_ };
            // SAFETY: its parts do, too.
            let wait = unsafe { (*core).hsa_signal_wait_scacquire_fn }.unwrap();
            // SAFETY: the signal lives.
            assert!(unsafe { wait(done, condition, 1, nanoseconds, state) } < 1, "the copy does not end");
        };
        // SAFETY: host memory of that many bytes, ours alone; the copy engine is at it only inside of `run`.
        with(unsafe { std::slice::from_raw_parts_mut(staging.cast(), bytes) }, &run);
        hsa!(self, core_.hsa_signal_destroy_fn(done));
        hsa!(self, amd_ext_.hsa_amd_memory_pool_free_fn(staging));
    }

    /// Memory that hands out what this one has handed out, in the same order.
    fn again(&self) -> Arc<Self> {
        let mut again = self.made.lock().unwrap().clone();
        again.reverse();
        Arc::new(Self {
            table: self.table,
            gpu: self.gpu,
            cpu: self.cpu,
            host: self.host,
            device: self.device,
            made: Mutex::default(),
            again: Mutex::new(again),
        })
    }
}

impl Memory for Pools {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        if let Some((address, bytes)) = self.again.lock().unwrap().pop() {
            assert_eq!(bytes, request.bytes, "both ask for the same memory");
            return Ok(address);
        }
        let pool = if request.flags.host_access() { self.host } else { self.device };
        let mut address = std::ptr::null_mut();
        hsa!(
            self,
            amd_ext_.hsa_amd_memory_pool_allocate_fn(pool, request.bytes as usize, 0, &raw mut address)
        );
        let flags = std::ptr::null();
        hsa!(self, amd_ext_.hsa_amd_agents_allow_access_fn(1, &raw const self.gpu, flags, address));
        self.made.lock().unwrap().push((address as u64, request.bytes));
        Ok(address as u64)
    }

    fn free(&self, _address: u64) {}

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.copy(address, bytes.len(), |staging, run| {
            staging.copy_from_slice(bytes);
            run(Way::In);
        });
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.copy(address, into.len(), |staging, run| {
            run(Way::Out);
            into.copy_from_slice(staging);
        });
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        // SAFETY: host memory of an allocation that this object made; the GPU is not at it.
        unsafe { std::ptr::copy(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }

    fn load(&self, address: u64, into: &mut [u8]) {
        // SAFETY: host memory of an allocation that this object made; the GPU is done with it.
        unsafe { std::ptr::copy(address as *const u8, into.as_mut_ptr(), into.len()) };
    }
}

fn shape(rig: &Rig) -> AgentShape {
    let folder = std::env::var_os("WAVESCOPE_GPU_TOPOLOGY").unwrap();
    let topology = Topology::read(folder.as_ref()).unwrap();
    let mut shape = AgentShape::from(&topology.agents()[0]);
    shape.hsa_agent = Some(rig.gpu().agent().handle);
    shape
}

/// A packet of a program as it goes into a queue.
fn vendor(mut packet: AqlPacket) -> AqlPacket {
    packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, true, Fence::System, Fence::System));
    packet
}

/// Work-groups of 192 work-items, the last one of 70.
const GROUP: u16 = 192;
const GRID: u32 = 192 * 37 + 70;
const LAUNCHES: u64 = 5;

fn waves(rig: &Rig) -> u64 {
    let lanes = if rig.gpu().target().starts_with("gfx9") { 64 } else { 32 };
    LAUNCHES * (37 * u64::from(GROUP).div_ceil(lanes) + 70_u64.div_ceil(lanes))
}

/// Runs kernels between packets.
fn run(rig: &Rig, before: &[AqlPacket], after: &[AqlPacket]) {
    let (_module, kernel) = rig.empty();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let mut batch = Batch::new();
    for packet in before {
        batch.packet(vendor(*packet));
    }
    for _ in 0..LAUNCHES {
        batch.launch(Launch::new(kernel.clone(), [GRID, 1, 1], [GROUP, 1, 1]));
    }
    for packet in after {
        batch.packet(vendor(*packet));
    }
    // The batch is over when its launches are: what reads must be, too.
    let over = rig.application.signal(1).unwrap();
    batch.barrier(wavescope_workload::Dependency::All, &[], Some(&over));
    queue.submit(&batch).unwrap().wait(SOON).unwrap();
    over.wait_below(1, SOON).unwrap();
    queue.health().unwrap();
}

fn values(instance: &dyn CounterInstance) -> Vec<(usize, u64)> {
    let mut values = Vec::new();
    instance
        .iterate(&mut |sample, value| {
            values.push((sample.counter_id as usize, value));
            ControlFlow::Continue(())
        })
        .unwrap();
    values
}

#[test]
fn counters_of_either_program_are_read_by_both_as_the_geometry_says() {
    let name = "counters_of_either_program_are_read_by_both_as_the_geometry_says";
    on_runtime(&TARGETS, module_path!(), name, |rig| {
        let (shape, pools) = (shape(rig), Pools::new(rig));
        let memory: Arc<dyn Memory> = Arc::clone(&pools) as _;
        let native = Native::open().unwrap();
        let ours = Builtin.counters(&shape, &[SQ_WAVES]).unwrap().instance(&memory).unwrap();
        let commands = pools.made.lock().unwrap()[1];
        let mut written = vec![0; commands.1 as usize];
        pools.load(commands.0, &mut written);
        let again: Arc<dyn Memory> = pools.again();
        let theirs = native.counters(&shape, &[SQ_WAVES]).unwrap().instance(&again).unwrap();
        // Over the same memory the two are the same: packets and commands.
        let packets = |instance: &dyn CounterInstance| [instance.start(), instance.read(), instance.stop()];
        assert_eq!(packets(&*ours), packets(&*theirs));
        let mut rewritten = vec![0; commands.1 as usize];
        pools.load(commands.0, &mut rewritten);
        assert!(written == rewritten, "commands differ");

        // Never started: nothing is counted.
        run(rig, &[], &[ours.read()]);
        assert_eq!(values(&*theirs).iter().map(|(_, value)| value).sum::<u64>(), 0);
        for instance in [&ours, &theirs] {
            instance.clear();
            run(rig, &[instance.start()], &[instance.read(), instance.stop()]);
            let read = [values(&*ours), values(&*theirs)];
            assert_eq!(read[0], read[1]);
            assert_eq!(read[0].iter().map(|(_, value)| value).sum::<u64>(), waves(rig));
        }
    });
}

/// Data of each engine.
fn data(instance: &dyn TraceInstance) -> (Status, Vec<(u32, Vec<u8>)>) {
    let mut data = Vec::new();
    let status = instance.iterate(&mut |engine, bytes| data.push((engine, bytes.to_vec())));
    (status, data)
}

#[test]
fn trace_of_either_program_is_read_by_both_alike() {
    on_runtime(&TARGETS, module_path!(), "trace_of_either_program_is_read_by_both_alike", |rig| {
        let (shape, pools) = (shape(rig), Pools::new(rig));
        let memory: Arc<dyn Memory> = Arc::clone(&pools) as _;
        let native = Native::open().unwrap();
        let mut parameters = vec![TraceParameter::target(0), TraceParameter::se_mask(1)];
        parameters.extend(TraceParameter::buffer_size(1 << 20));
        let config = TraceConfig::from(parameters);
        let ours = Builtin.trace(&shape, &config).unwrap().instance(&memory).unwrap();
        let again: Arc<dyn Memory> = pools.again();
        let theirs = native.trace(&shape, &config).unwrap().instance(&again).unwrap();
        for instance in [&ours, &theirs] {
            let (control, bytes) = instance.control();
            pools.store(control, &vec![0; bytes as usize]);
            // Device memory, all of it: what is read then is of this run.
            let trace = pools.made.lock().unwrap()[1];
            pools.copy_in(trace.0, &vec![0; trace.1 as usize]);
            run(rig, &[instance.start()], &[instance.stop()]);
            let (read, read_by_theirs) = (data(&*ours), data(&*theirs));
            assert_eq!(read.0, read_by_theirs.0);
            assert!(read.1 == read_by_theirs.1, "the engines' bytes differ");
            assert!(read.0.is_success(), "{:?}", read.0);
            // One engine, and its waves left something in the buffer.
            assert_eq!(read.1.len(), 1);
            let bytes = &read.1[0].1;
            let written = bytes.iter().filter(|byte| **byte != 0).count();
            assert!(written > 64 && written > bytes.len() / 4, "{written} of {} bytes", bytes.len());
        }
    });
}
