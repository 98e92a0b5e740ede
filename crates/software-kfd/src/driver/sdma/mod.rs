//! SDMA queues: one thread each, which takes packets from a ring and moves memory.

mod execute;
mod memory;
mod packet;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wavescope_software_gpu::Access;

use execute::{Outcome, execute};
use memory::{Fault, Memory};
use packet::{Layout, Packet, Unreadable, Words, parse};

use super::gpu::Doorbell;
use super::host::GpuHost;

/// Where a queue lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    /// Address of the ring.
    pub(super) ring: u64,
    /// Its length, a power of two.
    pub(super) ring_bytes: u64,
    /// Address of the read pointer, in bytes, which grows without end.
    pub(super) read_pointer: u64,
    /// Holds the write pointer, in bytes.
    pub(super) doorbell: Doorbell,
    /// The GPU's major version.
    pub(super) gfx_major: u8,
}

/// A queue. Dropping it stops its thread and waits for it.
#[derive(Debug)]
pub(super) struct Queue {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    /// Starts a queue.
    pub(super) fn start(config: Config, host: Arc<GpuHost>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let layout = if config.gfx_major >= 12 { Layout::Gfx12 } else { Layout::Classic };
        let memory = Memory::new(Arc::clone(&host));
        let (stopped, read) = (Arc::clone(&stop), 0);
        let engine = Engine {
            config,
            layout,
            memory,
            host,
            stop: stopped,
            read,
            seen: Doorbell::PRESET,
            waiting: None,
        };
        let thread = std::thread::Builder::new().name("sdma".into()).spawn(|| engine.work())?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

/// Why a queue stops for good.
enum Stop {
    Fault(Fault),
    Unknown(u32),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

enum Step {
    Progress,
    /// A packet waits for memory to change.
    Waiting,
    /// No packet.
    Empty,
}

struct Engine {
    config: Config,
    layout: Layout,
    memory: Memory,
    host: Arc<GpuHost>,
    stop: Arc<AtomicBool>,
    read: u64,
    /// The doorbell as it was last looked at.
    seen: u64,
    /// A packet that waits, with its length.
    waiting: Option<(Packet, u64)>,
}

impl Engine {
    fn work(mut self) {
        let mut pause = Pause::default();
        let mut dead = false;
        while !self.stop.load(Ordering::Acquire) {
            match if dead { Ok(Step::Empty) } else { self.step() } {
                Ok(Step::Progress) => pause.reset(),
                Ok(Step::Waiting) => pause.pass(),
                Ok(Step::Empty) if pause.is_long() => {
                    self.host.watch().sleep(self.config.doorbell.word(), self.seen);
                    pause.reset();
                }
                Ok(Step::Empty) => pause.pass(),
                Err(stop) => {
                    self.report(&stop);
                    dead = true;
                }
            }
        }
    }

    /// At most one packet.
    fn step(&mut self) -> Result<Step, Stop> {
        let next = match self.waiting.take() {
            Some(next) => next,
            None => match self.next()? {
                Some(next) => next,
                None => return Ok(Step::Empty),
            },
        };
        match execute(&next.0, &self.memory)? {
            Outcome::Waiting => {
                self.waiting = Some(next);
                Ok(Step::Waiting)
            }
            Outcome::Done => {
                self.read += next.1 * 4;
                self.pointer()?.store(self.read, Ordering::Release);
                Ok(Step::Progress)
            }
        }
    }

    /// The packet at the read pointer, if there is one.
    fn next(&mut self) -> Result<Option<(Packet, u64)>, Stop> {
        self.seen = self.config.doorbell.word().load(Ordering::Acquire);
        let written = if self.seen == Doorbell::PRESET { 0 } else { self.seen };
        if written <= self.read {
            return Ok(None);
        }
        let Config { ring, ring_bytes, .. } = self.config;
        // One question for the whole ring; it is mapped as long as the queue lives.
        self.memory.dword(ring, Access::Read)?;
        self.memory.dword(ring + ring_bytes - 4, Access::Read)?;
        let load = |index: u64| {
            let address = ring + (self.read + index * 4) % ring_bytes;
            let word = self.memory.dword(address, Access::Read);
            // A ring with a hole in its middle reads as an unknown operation there.
            word.map_or(u32::MAX, |word| word.load(Ordering::Relaxed))
        };
        match parse(&Words { load: &load, count: (written - self.read) / 4 }, self.layout) {
            Ok(packet) => Ok(Some(packet)),
            Err(Unreadable::Incomplete) => Ok(None),
            Err(Unreadable::Unknown { header }) => Err(Stop::Unknown(header)),
        }
    }

    fn pointer(&self) -> Result<&AtomicU64, Fault> {
        self.memory.quad(self.config.read_pointer, Access::Write)
    }

    /// Hardware would hang here until the kernel resets the engine and tells the runtime.
    fn report(&self, stop: &Stop) {
        match *stop {
            Stop::Fault(Fault { address, access }) => self.host.memory_fault(address, access),
            Stop::Unknown(header) => {
                eprintln!(
                    "wavescope-software-kfd: SDMA stops at byte {:#x}: unknown packet {header:#010x}",
                    self.read
                );
                self.host.engine_reset();
            }
        }
    }
}

/// How the thread passes time: it spins, yields, then sleeps longer and longer.
#[derive(Default)]
struct Pause {
    rounds: u32,
}

impl Pause {
    const SPINS: u32 = 1_000;
    const YIELDS: u32 = 50;
    const FIRST_SLEEP: Duration = Duration::from_micros(20);
    const LONGEST_SLEEP: Duration = Duration::from_millis(1);

    fn reset(&mut self) {
        self.rounds = 0;
    }

    /// Whether spinning and yielding are over.
    fn is_long(&self) -> bool {
        self.rounds >= Self::SPINS + Self::YIELDS
    }

    fn pass(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        match self.rounds.checked_sub(Self::SPINS) {
            None => std::hint::spin_loop(),
            Some(rounds) if rounds < Self::YIELDS => std::thread::yield_now(),
            Some(rounds) => {
                let doublings = ((rounds - Self::YIELDS) / 4).min(6);
                std::thread::park_timeout((Self::FIRST_SLEEP * (1 << doublings)).min(Self::LONGEST_SLEEP));
            }
        }
    }
}
