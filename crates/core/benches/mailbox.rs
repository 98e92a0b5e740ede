//! What a message costs: to send one to an actor that is busy, and to ask one that sleeps and wait.

#![expect(missing_docs, clippy::unwrap_used, reason = "criterion's macros, and a bench")]

use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wavescope_core::actor::{Actor, Reply, spawn};
use wavescope_core::sync::{Places, mailbox};

struct Echo;

struct Ask(u64, Reply<u64>);

impl Actor for Echo {
    type Message = Ask;
    const NAME: &'static str = "echo";

    fn handle(&mut self, Ask(value, reply): Ask) -> ControlFlow<()> {
        reply.send(value);
        ControlFlow::Continue(())
    }
}

fn round_trip(criterion: &mut Criterion) {
    let echo = spawn(Echo, Places { requests: 16, notices: 0 }).unwrap();
    let mut group = criterion.benchmark_group("core/mailbox");
    group.throughput(Throughput::Elements(1));
    group.bench_function("round_trip", |bencher| {
        bencher.iter(|| assert_eq!(echo.address().ask(|reply| Ask(7, reply)).wait().unwrap(), 7));
    });
    group.finish();
}

fn one_thread(criterion: &mut Criterion) {
    let (sender, mut receiver) = mailbox(Places { requests: 64, notices: 64 });
    let mut group = criterion.benchmark_group("core/mailbox");
    group.throughput(Throughput::Elements(1));
    group.bench_function("notify_recv", |bencher| {
        bencher.iter(|| {
            sender.notify(7_u64).unwrap();
            assert_eq!(receiver.recv(), Ok(7));
        });
    });
    group.bench_function("send_recv", |bencher| {
        bencher.iter(|| {
            sender.send(7_u64).unwrap();
            assert_eq!(receiver.recv(), Ok(7));
        });
    });
    group.finish();
}

criterion_group!(benches, round_trip, one_thread);
criterion_main!(benches);
