//! What sharing costs: the set-up of 400 contexts on one agent, and a traced dispatch's way through the owner.

#![expect(missing_docs, clippy::unwrap_used, reason = "criterion's macros, and a bench")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use wavescope_att_resources::{
    AgentOwner, BufferId, Completion, Device, DeviceError, Lease, Limits, Message, Need, Source, TraceClient,
    TraceId,
};
use wavescope_core::{AgentId, AqlPacket, ContextId, LossReason, QueueId, Token};

const CONTEXTS: u64 = 400;

/// A device that costs nothing.
struct Idle;

impl Device for Idle {
    fn create_queue(&mut self, _packets: usize) -> Result<(), DeviceError> {
        Ok(())
    }
    fn destroy_queue(&mut self) {}
    fn allocate(&mut self, _buffer: BufferId, _bytes: u64) -> Result<u64, DeviceError> {
        Ok(0x10_0000)
    }
    fn free(&mut self, _buffer: BufferId, _address: u64) {}
    fn leak(&mut self, _buffer: BufferId, _address: u64) {}
    fn submit(&mut self, _packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError> {
        done.finish(Ok(()));
        Ok(())
    }
}

/// Says when a trace may be copied and when the next may run.
struct Signals(Sender<()>);

impl TraceClient for Signals {
    fn ended(&self, _trace: TraceId, _outcome: Result<(), LossReason>) {
        self.0.send(()).unwrap();
    }
    fn release(&self, _trace: TraceId) {
        self.0.send(()).unwrap();
    }
}

/// Contexts that alternate between two sizes, each with its slot.
fn set_up(contexts: u64) -> (Arc<AgentOwner>, Vec<Lease>, Receiver<()>) {
    let owner = AgentOwner::new(AgentId(0), Box::new(Idle), Limits::default());
    let (sender, signals) = channel();
    let client = Arc::new(Signals(sender));
    for context in 0..contexts {
        let need = Need { buffer_bytes: 512 << 20 << (context % 2), buffers: 1 };
        owner.register(ContextId(context), 1, need).unwrap();
    }
    let lease = |context| {
        let lease = owner.acquire(ContextId(context), 1, client.clone()).unwrap();
        lease.resolve(BufferId::Output(0), lease.own().buffer_bytes).unwrap();
        lease
    };
    let leases = (0..contexts).map(lease).collect();
    (owner, leases, signals)
}

fn contexts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("att-resources/contexts");
    group.throughput(Throughput::Elements(CONTEXTS));
    group.bench_function("set_up_400", |bencher| {
        bencher.iter_batched(|| (), |()| set_up(CONTEXTS), BatchSize::PerIteration);
    });
    let (_owner, leases, _signals) = set_up(CONTEXTS);
    group.bench_function("claim_and_unhook_400", |bencher| {
        bencher.iter(|| {
            for lease in &leases {
                lease.claim().unwrap();
                lease.unhook().unwrap();
            }
        });
    });
    group.finish();
}

fn traced_dispatch(criterion: &mut Criterion) {
    let (owner, leases, signals) = set_up(1);
    leases[0].claim().unwrap();
    let address = owner.address().unwrap();
    let trace = TraceId { context: ContextId(0), token: Token { index: 0, generation: 0 } };
    let mut group = criterion.benchmark_group("att-resources/owner");
    group.throughput(Throughput::Elements(1));
    group.bench_function("traced_dispatch", |bencher| {
        bencher.iter(|| {
            let source = Source::Dispatch { queue: QueueId(1) };
            let begin = Message::Begin { trace, source, reply: None };
            let retired = Message::StopRetired { trace, outcome: Ok(()) };
            for message in [begin, Message::StopSubmitted { trace }, retired] {
                assert!(matches!(address.notify(message), Ok(true)));
            }
            signals.recv().unwrap();
            assert!(matches!(address.notify(Message::SlotCopied { trace }), Ok(true)));
            signals.recv().unwrap();
        });
    });
    group.finish();
    address.send(Message::Drained { context: ContextId(0), queue: QueueId(1) }).unwrap();
}

criterion_group!(benches, contexts, traced_dispatch);
criterion_main!(benches);
