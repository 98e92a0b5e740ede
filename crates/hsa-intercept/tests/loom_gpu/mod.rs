//! What models share: a device with signals in a map and one ring per queue, and the way to its rings.
#![expect(clippy::expect_used, reason = "a model fails where something is missing")]

pub(crate) mod probe;
mod twin;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::{Condvar, Mutex};
use wavescope_core::{AgentId, AqlPacket, DispatchTimes, Fence, PacketHeader, PacketType};
use wavescope_hsa_intercept::{Device, Error, QueueHandle, Signal, SignalKind};

pub(crate) use twin::{NEVER, broken};

pub(crate) const AGENT: AgentId = AgentId(0);

pub(crate) fn kernel() -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::None, Fence::None));
    packet
}

/// Submits one kernel on a ring.
pub(crate) fn submit(gpu: &Gpu, queue: &QueueHandle, ring: usize) {
    queue.rewrite(&[kernel()], 0, |packets| gpu.rings.lock().entry(ring).or_default().extend(packets));
}

/// Signals by handle, and rings by number.
#[derive(Default)]
pub(crate) struct Gpu {
    signals: Mutex<BTreeMap<u64, i64>>,
    changed: Condvar,
    pub(crate) rings: Mutex<BTreeMap<usize, VecDeque<AqlPacket>>>,
}

impl Gpu {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Executes packets of a ring while they can run; returns how many kernels did.
    pub(crate) fn run(&self, ring: usize) -> usize {
        let mut kernels = 0;
        loop {
            let next = self.rings.lock().get_mut(&ring).and_then(VecDeque::pop_front);
            let Some(packet) = next else { break };
            let dependency = u64::from(packet.0[2]);
            let barrier = packet.header().kind() == PacketType::BARRIER_AND;
            if barrier && dependency != 0 && self.load(Signal(dependency)) != 0 {
                self.rings.lock().entry(ring).or_default().push_front(packet);
                break;
            }
            kernels += usize::from(packet.header().kind() == PacketType::KERNEL_DISPATCH);
            self.add(packet.completion_signal(), -1);
        }
        kernels
    }

    /// Signals that exist.
    pub(crate) fn live(&self) -> usize {
        self.signals.lock().len()
    }

    fn add(&self, signal: u64, by: i64) {
        if signal != 0 {
            *self.signals.lock().get_mut(&signal).expect("a packet names a signal that is gone") += by;
            self.changed.notify_all();
        }
    }
}

impl Device for Gpu {
    fn create_signal(&self, initial: i64, _kind: SignalKind) -> Result<Signal, Error> {
        let mut signals = self.signals.lock();
        let handle = signals.last_key_value().map_or(8, |(last, _)| last + 8);
        signals.insert(handle, initial);
        Ok(Signal(handle))
    }

    fn destroy_signal(&self, signal: Signal) {
        self.signals.lock().remove(&signal.0).expect("a signal is destroyed twice");
    }

    fn load(&self, signal: Signal) -> i64 {
        *self.signals.lock().get(&signal.0).expect("a signal is read after its end")
    }

    fn store(&self, signal: Signal, value: i64) {
        *self.signals.lock().get_mut(&signal.0).expect("a signal is written after its end") = value;
        self.changed.notify_all();
    }

    fn subtract(&self, signal: Signal, by: i64) {
        self.add(signal.0, -by);
    }

    fn wait_below(&self, signal: Signal, below: i64, _limit: Duration) {
        let mut signals = self.signals.lock();
        while *signals.get(&signal.0).expect("a signal is read after its end") >= below {
            signals = self.changed.wait(signals);
        }
    }

    fn dispatch_times(&self, _agent: AgentId, _signal: Signal) -> Option<DispatchTimes> {
        None
    }

    fn now_ns(&self) -> u64 {
        0
    }
}
