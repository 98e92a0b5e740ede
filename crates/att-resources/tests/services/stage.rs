//! Interception, memory and GPU of the tests: a traced dispatch is one call, and writes what the test says.
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wavescope_aql_profile::{
    AgentShape, AllocationRequest, BufferFlags, Builtin, Memory, PacketPrograms, Status, TraceConfig,
    TraceParameter,
};
use wavescope_att_resources::{DeviceError, SlotReader};
use wavescope_core::sync::{Condvar, Mutex};
use wavescope_core::{
    AgentId, Answer, AqlPacket, Company, Dispatch, DispatchEvent, DispatchId, DispatchSubscriber,
    DispatchTimes, Interception, InterceptionError, LossReason, Outcome, ProgramSink, QueueId, Subscription,
    SubscriptionId, Token,
};

/// An MI300X.
pub(crate) fn shape() -> AgentShape {
    AgentShape::new("gfx942", 8, 32, 304, 1)
}

/// Traces unit 1 of the engines in `mask` into `bytes` of buffer.
pub(crate) fn config(mask: u32, bytes: u64) -> TraceConfig {
    let mut parameters =
        vec![TraceParameter::target(1), TraceParameter::se_mask(mask), TraceParameter::simd_selection(0xF)];
    parameters.extend(TraceParameter::buffer_size(bytes));
    TraceConfig::from(parameters)
}

/// Host memory of packet programs: each allocation a vector at a made-up address.
#[derive(Default)]
pub(crate) struct Arena(Mutex<BTreeMap<u64, (AllocationRequest, Vec<u8>)>>, Mutex<Vec<u64>>);

impl Arena {
    /// The control record of the one instance.
    fn control(&self) -> u64 {
        let allocations = self.0.lock();
        let mut found =
            allocations.iter().filter(|(_, (request, _))| request.flags == BufferFlags::TRACE_CONTROL);
        *found.next().unwrap().0
    }

    pub(crate) fn allocations(&self) -> usize {
        self.0.lock().len()
    }

    /// Addresses that were freed without having been allocated.
    pub(crate) fn strays(&self) -> Vec<u64> {
        self.1.lock().clone()
    }

    fn with<T>(&self, address: u64, access: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut allocations = self.0.lock();
        let (base, (_, bytes)) = allocations.range_mut(..=address).next_back().unwrap();
        access(&mut bytes[(address - base) as usize..])
    }
}

impl Memory for Arena {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let mut allocations = self.0.lock();
        let last =
            allocations.last_key_value().map_or(0x1000, |(base, (_, bytes))| base + bytes.len() as u64);
        let address = last.next_multiple_of(4096);
        allocations.insert(address, (request, vec![0; request.bytes as usize]));
        Ok(address)
    }

    fn free(&self, address: u64) {
        if self.0.lock().remove(&address).is_none() {
            self.1.lock().push(address);
        }
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.with(address, |memory| memory[..bytes.len()].copy_from_slice(bytes));
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.with(address, |memory| into.copy_from_slice(&memory[..into.len()]));
    }
}

/// What the GPU wrote into its slots, by address of the first byte.
#[derive(Default)]
pub(crate) struct Slots {
    written: Mutex<BTreeMap<u64, Vec<u8>>>,
    pub(crate) refuse: Mutex<bool>,
}

impl SlotReader for Slots {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        if *self.refuse.lock() {
            return Err(DeviceError::Call { call: "memory_copy", status: 0x1000 });
        }
        if let Some(bytes) = self.written.lock().get(&address) {
            into.copy_from_slice(&bytes[..into.len()]);
        }
        Ok(())
    }
}

/// Data of one engine, a multiple of 32 bytes.
pub(crate) struct EngineWrites {
    pub(crate) engine: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) full: bool,
}

/// Writes what the stop packet's commands and the engines would: data into the slot at `slot`, for each engine its
/// write pointer (in units of 32 bytes, SQ_THREAD_TRACE_WPTR) and status (full is bit 31 on gfx9).
pub(crate) fn write_trace(
    arena: &Arena,
    slots: &Slots,
    slot: u64,
    config: &TraceConfig,
    writes: &[EngineWrites],
) {
    let program = Builtin.trace(&shape(), config).unwrap();
    for write in writes {
        let offset = program.layout().engines[write.engine as usize].offset;
        slots.written.lock().insert(slot + offset, write.bytes.clone());
        let record = arena.control() + 32 * u64::from(write.engine);
        arena.copy_in(record, &(u32::from(write.full) << 31).to_le_bytes());
        arena.copy_in(record + 8, &(write.bytes.len() as u32 / 32).to_le_bytes());
    }
}

/// What interception was asked and told, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Subscribe,
    Quiesce,
    Drain,
    Unsubscribe,
    ReturnGrant(Token),
}

#[derive(Default)]
struct Traffic {
    calls: Vec<Call>,
    subscription: Option<Subscription>,
    in_flight: usize,
    dispatches: u64,
    refuse: bool,
    inside_callback: bool,
}

/// Interception with one subscriber, whose dispatches run when the test says so.
#[derive(Default)]
pub(crate) struct Stage {
    traffic: Mutex<Traffic>,
    changed: Condvar,
}

/// A dispatch that was enqueued.
pub(crate) struct Launched {
    pub(crate) answer: Answer,
    pub(crate) before: Vec<AqlPacket>,
    pub(crate) after: Vec<AqlPacket>,
    pub(crate) id: DispatchId,
}

impl Launched {
    pub(crate) fn token(&self) -> Token {
        match self.answer {
            Answer::Instrument { token, .. } => token,
            other => unreachable!("not traced: {other:?}"),
        }
    }
}

impl Stage {
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.traffic.lock().calls.clone()
    }

    pub(crate) fn refuse_subscriptions(&self, refuse: bool) {
        self.traffic.lock().refuse = refuse;
    }

    /// A hook enters a callback, or leaves it.
    pub(crate) fn set_inside_callback(&self, inside: bool) {
        self.traffic.lock().inside_callback = inside;
    }

    pub(crate) fn subscription(&self) -> Subscription {
        self.traffic.lock().subscription.clone().unwrap()
    }

    /// One dispatch on `queue`, as the write hook handles it.
    pub(crate) fn launch(&self, agent: AgentId, queue: u64) -> Launched {
        let (id, subscriber) = {
            let mut traffic = self.traffic.lock();
            traffic.dispatches += 1;
            (DispatchId(traffic.dispatches), traffic.subscription.as_ref().unwrap().subscriber.clone())
        };
        let dispatch = Dispatch {
            id,
            agent,
            queue: QueueId(queue),
            kernel_object: 0x7000,
            grid: [64, 1, 1],
            workgroup: [64, 1, 1],
            private_segment_bytes: 0,
            group_segment_bytes: 0,
            thread: None,
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let answer = subscriber.enqueue(&dispatch, &mut ProgramSink::new(&mut before, &mut after));
        if let Answer::Instrument { token, .. } = answer {
            self.traffic.lock().in_flight += 1;
            subscriber.publish(DispatchEvent::Dispatched { token, dispatch });
        }
        Launched { answer, before, after, id }
    }

    /// Its stop packet retired.
    pub(crate) fn retire(&self, launched: &Launched) {
        self.end(launched, Outcome::Completed(DispatchTimes::default()));
    }

    pub(crate) fn lose(&self, launched: &Launched, reason: LossReason) {
        self.end(launched, Outcome::Lost(reason));
    }

    fn end(&self, launched: &Launched, outcome: Outcome) {
        self.publish(&self.subscription().subscriber, launched, outcome);
    }

    /// As [`retire`](Self::retire), for a subscriber that has left.
    pub(crate) fn finish(&self, subscriber: &Arc<dyn DispatchSubscriber>, launched: &Launched) {
        self.publish(subscriber, launched, Outcome::Completed(DispatchTimes::default()));
    }

    fn publish(&self, subscriber: &Arc<dyn DispatchSubscriber>, launched: &Launched, outcome: Outcome) {
        subscriber.publish(DispatchEvent::Retired {
            token: launched.token(),
            outcome,
            company: Company::default(),
        });
        self.traffic.lock().in_flight -= 1;
        self.changed.notify_all();
    }

    /// Waits until `call` was made.
    pub(crate) fn wait_for(&self, call: Call) {
        let mut traffic = self.traffic.lock();
        while !traffic.calls.contains(&call) {
            traffic = self.changed.wait(traffic);
        }
    }

    fn note(&self, call: Call) {
        self.traffic.lock().calls.push(call);
        self.changed.notify_all();
    }
}

impl Interception for Stage {
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError> {
        if self.traffic.lock().refuse {
            return Err(InterceptionError::ShutDown);
        }
        self.traffic.lock().subscription = Some(subscription);
        self.note(Call::Subscribe);
        Ok(SubscriptionId(1))
    }

    fn quiesce(&self, subscription: SubscriptionId) -> Result<(), InterceptionError> {
        self.note(Call::Quiesce);
        let (agent, queue, waited) = (AgentId(0), QueueId(7), Duration::from_secs(10));
        let busy = InterceptionError::CallbackBusy { subscription, agent, queue, waited };
        if self.traffic.lock().inside_callback { Err(busy) } else { Ok(()) }
    }

    fn settle(&self, _id: SubscriptionId, _timeout: Duration) -> Result<(), InterceptionError> {
        Ok(())
    }

    fn drain(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        self.note(Call::Drain);
        let mut traffic = self.traffic.lock();
        while traffic.in_flight > 0 {
            let (guard, timed_out) = self.changed.wait_timeout(traffic, timeout);
            traffic = guard;
            if timed_out {
                let in_flight = traffic.in_flight;
                return Err(InterceptionError::DrainTimedOut { subscription: id, in_flight, timeout });
            }
        }
        Ok(())
    }

    fn unsubscribe(&self, _id: SubscriptionId) -> Result<(), InterceptionError> {
        let gone = self.traffic.lock().subscription.take();
        drop(gone);
        self.note(Call::Unsubscribe);
        Ok(())
    }

    fn return_grant(&self, _id: SubscriptionId, token: Token) {
        self.note(Call::ReturnGrant(token));
    }
}
