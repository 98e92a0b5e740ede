use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;

use wavescope_aql_profile::{Error, Sample, Status};
use wavescope_core::sync::Mutex;

use super::*;

struct NoInstance;

impl CounterInstance for NoInstance {
    fn start(&self) -> AqlPacket {
        AqlPacket([0; 16])
    }

    fn read(&self) -> AqlPacket {
        AqlPacket([0; 16])
    }

    fn stop(&self) -> AqlPacket {
        AqlPacket([0; 16])
    }

    fn output(&self) -> (u64, u64) {
        (0, 0)
    }

    fn clear(&self) {}

    fn iterate(&self, _each: &mut dyn FnMut(&Sample, u64) -> ControlFlow<Status>) -> Result<(), Error> {
        Ok(())
    }

    fn sibling(&self) -> Result<Box<dyn CounterInstance>, Error> {
        Ok(Box::new(Self))
    }
}

fn make(_first: Option<&SharedInstance>) -> Option<(Packets, SharedInstance)> {
    let empty = AqlPacket([0; 16]);
    let packets = Packets { start: empty, read: empty, stop: empty };
    Some((packets, Arc::new(Mutex::new(Box::new(NoInstance)))))
}

const A: QueueId = QueueId(1);
const B: QueueId = QueueId(2);

/// A queue of the GPU: uses in order, gates between them.
#[derive(Default)]
struct Gpu {
    packets: HashMap<QueueId, VecDeque<Packet>>,
    /// Executed, not yet read, oldest first.
    retired: VecDeque<Use>,
    /// Instances whose output is not read yet.
    unread: Vec<usize>,
    returned: Vec<Token>,
    open: HashSet<Token>,
    tokens: u32,
    executed: usize,
}

enum Packet {
    Use(Use),
    Gate(Token),
}

impl Gpu {
    fn enqueue(&mut self, pool: &mut PoolState, queue: QueueId) {
        let taken = pool.take(queue, make).unwrap();
        let packets = self.packets.entry(queue).or_default();
        packets.push_back(Packet::Use(taken.used));
        if taken.holds {
            self.tokens += 1;
            let token = Token { index: self.tokens, generation: 0 };
            pool.hold(queue, token);
            packets.push_back(Packet::Gate(token));
            if pool.announce(queue, token) {
                self.returned.push(token);
            }
        }
    }

    /// Executes what can run; returns whether anything did.
    fn run(&mut self, queue: QueueId) -> bool {
        self.open.extend(self.returned.drain(..));
        let packets = self.packets.entry(queue).or_default();
        match packets.front() {
            Some(Packet::Gate(token)) if !self.open.contains(token) => return false,
            Some(Packet::Gate(_)) => {}
            Some(Packet::Use(used)) => {
                assert!(!self.unread.contains(&used.instance), "{used:?} overwrites output that nobody read");
                self.unread.push(used.instance);
                self.retired.push_back(*used);
                self.executed += 1;
            }
            None => return false,
        }
        packets.pop_front();
        true
    }

    /// The actor reads the oldest retired use; returns whether there was one.
    fn read(&mut self, pool: &mut PoolState) -> bool {
        let Some(used) = self.retired.pop_front() else { return false };
        self.unread.retain(|instance| *instance != used.instance);
        pool.put_back(used, &mut self.returned);
        true
    }
}

#[test]
fn instances_are_reused_as_soon_as_they_were_read() {
    let pool = Pool::new(8);
    let mut gpu = Gpu::default();
    for _ in 0..100 {
        let pool = &mut pool.lock();
        gpu.enqueue(pool, A);
        assert!(gpu.run(A) && gpu.read(pool));
    }
    assert_eq!(pool.lock().made(), 1);
}

#[test]
fn long_batch_is_counted_with_few_instances_and_never_overwrites() {
    for limit in [1, 2, 3, 8] {
        let pool = Pool::new(limit);
        let pool = &mut pool.lock();
        let mut gpu = Gpu::default();
        for _ in 0..16_384 {
            gpu.enqueue(pool, A);
        }
        assert_eq!(pool.made(), limit as usize);
        while gpu.run(A) || gpu.read(pool) {}
        assert_eq!(gpu.executed, 16_384, "limit {limit}");
        assert_eq!(pool.free.len(), limit as usize, "all idle");
    }
}

// With the older half promised, the gate is open before the GPU gets there if the reader keeps up.
#[test]
fn a_reader_that_keeps_up_never_lets_the_gpu_wait() {
    let pool = Pool::new(8);
    let pool = &mut pool.lock();
    let mut gpu = Gpu::default();
    for _ in 0..1000 {
        gpu.enqueue(pool, A);
    }
    for _ in 0..1000 {
        // Two uses behind: the newest two retired ones are not read yet.
        while gpu.retired.len() > 2 {
            gpu.read(pool);
        }
        while matches!(gpu.packets[&A].front(), Some(Packet::Gate(_))) {
            assert!(gpu.run(A), "the gate is closed");
        }
        assert!(gpu.run(A));
    }
}

// Queue A {barrier on S, kernels that take all instances}, queue B {kernel that completes S}: B gets an instance.
#[test]
fn a_queue_never_waits_for_instances_of_another() {
    let pool = Pool::new(4);
    let pool = &mut pool.lock();
    let mut gpu = Gpu::default();
    for _ in 0..100 {
        gpu.enqueue(pool, A);
    }
    for _ in 0..100 {
        gpu.enqueue(pool, B);
    }
    while gpu.run(B) || gpu.read(pool) {}
    assert_eq!(gpu.executed, 100, "A did not run at all");
    while gpu.run(A) || gpu.read(pool) {}
    assert_eq!(gpu.executed, 200);
    assert_eq!(pool.made(), 6, "half of the limit beyond it");
}

// A queue has taken everything; the others get their share before they have to wait for the host.
#[test]
fn queues_that_come_late_get_their_share() {
    const LIMIT: u32 = 12;
    let pool = Pool::new(LIMIT);
    let pool = &mut pool.lock();
    let mut gpu = Gpu::default();
    for _ in 0..100 {
        gpu.enqueue(pool, A);
    }
    for (queue, share) in [(B, 6), (QueueId(3), 4), (QueueId(4), 3)] {
        (0..100).for_each(|_| gpu.enqueue(pool, queue));
        let gate = gpu.packets[&queue].iter().position(|packet| matches!(packet, Packet::Gate(_)));
        assert_eq!(gate, Some(share), "kernels of {queue} in front of its first gate");
    }
    assert_eq!(pool.made(), 12 + 6 + 4 + 3);
    for queue in [QueueId(4), B, QueueId(3), A] {
        while gpu.run(queue) || gpu.read(pool) {}
    }
    assert_eq!(gpu.executed, 400);
}

#[test]
fn an_instance_that_was_given_up_is_not_lent_again() {
    let pool = Pool::new(2);
    let pool = &mut pool.lock();
    let lost = pool.take(A, make).unwrap().used;
    pool.give_up(lost, &mut Vec::new());
    for _ in 0..10 {
        let next = pool.take(B, make).unwrap().used;
        assert_ne!(next.instance, lost.instance);
        pool.put_back(next, &mut Vec::new());
    }
}

#[test]
fn rings_of_queues_that_are_gone_are_reused() {
    let pool = Pool::new(2);
    let pool = &mut pool.lock();
    for queue in 0..1000 {
        let used = pool.take(QueueId(queue), make).unwrap().used;
        pool.put_back(used, &mut Vec::new());
    }
    assert_eq!(pool.rings.len(), 1);
}
