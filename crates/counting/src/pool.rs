//! Instances of one packet program, lent to dispatches.
//!
//! An instance has one output buffer, so a dispatch that uses it again must not start before the earlier one was read.
//! While instances are free, each dispatch takes a free one. When the last is taken, the queue that took it goes on
//! with instances of *its own ring* that are still in flight, and the GPU does the waiting:
//!
//! * The dispatch after which none is free **holds** its grant (`Grant::UntilReturned`): interception closes a gate
//!   behind it. The oldest half of the ring is *promised* to the dispatches behind that gate.
//! * The grant is returned when every earlier use of the promised instances was read. As that half is the older one, it
//!   has usually been read before the GPU reaches the gate, which then is open.
//! * Behind the last promised use stands the next gate, and so on, however long the batch.
//!
//! Only a queue's own instances are promised to it: uses of one queue retire in order, so the wait can only be for
//! something that lies before it. A queue that comes while others have all of them gets instances beyond the limit:
//! without one, queue A {barrier on S, kernels that take all}, queue B {kernel that completes S} would never end; with
//! only one, each of its kernels would wait until the host has read the one before. It gets its *share*, the limit
//! divided by the queues that count at the moment; so `n` queues together have at most the limit times
//! `1 + 1/2 + ... + 1/n`, or one each.

use std::collections::VecDeque;
use std::sync::Arc;

use wavescope_aql_profile::CounterInstance;
use wavescope_core::sync::{Mutex, MutexGuard};
use wavescope_core::{AqlPacket, QueueId, Token};

/// The packets of an instance, headers set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    pub(crate) start: AqlPacket,
    pub(crate) read: AqlPacket,
    pub(crate) stop: AqlPacket,
}

/// An instance as its reader sees it.
pub(crate) type SharedInstance = Arc<Mutex<Box<dyn CounterInstance>>>;

/// A use of an instance by a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) queue: QueueId,
    instance: usize,
    /// Number of the use on its queue, from 1.
    sequence: u64,
}

/// An instance that was taken.
pub(crate) struct Taken {
    pub(crate) used: Use,
    pub(crate) packets: Packets,
    /// The dispatch must hold its grant; see [`PoolState::hold`].
    pub(crate) holds: bool,
}

/// The instances of one configuration.
#[derive(Debug)]
pub(crate) struct Pool(Mutex<PoolState>);

#[derive(Debug)]
pub(crate) struct PoolState {
    limit: usize,
    instances: Vec<Instance>,
    free: Vec<usize>,
    /// Instances that are lent or free; the others are given up.
    alive: usize,
    rings: Vec<Ring>,
}

struct Instance {
    packets: Packets,
    shared: SharedInstance,
    in_flight: u32,
    last_use: u64,
    given_up: bool,
}

#[derive(Debug)]
struct Ring {
    queue: QueueId,
    /// Instances with uses in flight or promised, by last use.
    order: VecDeque<usize>,
    /// How many of the first are promised to the next dispatches.
    promised: usize,
    /// Number of the last use.
    used: u64,
    /// Number of the last use that was read.
    read: u64,
    holds: VecDeque<Hold>,
}

#[derive(Debug)]
struct Hold {
    token: Token,
    /// The use after whose reading the grant returns.
    until: u64,
    /// Interception knows of it.
    announced: bool,
}

impl Pool {
    pub(crate) fn new(limit: u32) -> Self {
        let limit = limit.max(1) as usize;
        let (instances, free, rings) = (Vec::new(), Vec::with_capacity(limit), Vec::new());
        Self(Mutex::new(PoolState { limit, instances, free, alive: 0, rings }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock()
    }
}

impl PoolState {
    /// Takes an instance for the next dispatch of `queue`; `make` makes one more, given the first one if there is one.
    /// `None` if that fails.
    pub(crate) fn take(
        &mut self,
        queue: QueueId,
        make: impl FnOnce(Option<&SharedInstance>) -> Option<(Packets, SharedInstance)>,
    ) -> Option<Taken> {
        let ring = self.ring(queue);
        let instance = match self.promised(ring).or_else(|| self.free.pop()) {
            Some(instance) => instance,
            None => {
                let made = make(self.instances.first().map(|first| &first.shared))?;
                self.add(made)
            }
        };
        let share = self.share(ring);
        let ring = &mut self.rings[ring];
        ring.used += 1;
        ring.order.push_back(instance);
        let lent = &mut self.instances[instance];
        lent.in_flight += 1;
        lent.last_use = ring.used;
        let used = Use { queue, instance, sequence: ring.used };
        let packets = lent.packets;
        let may_grow = self.alive < self.limit || ring.order.len() < share;
        let more = ring.promised > 0 || !self.free.is_empty() || may_grow;
        Some(Taken { used, packets, holds: !more })
    }

    /// Promises the older half of the ring to what follows the dispatch of `token`, which holds its grant.
    pub(crate) fn hold(&mut self, queue: QueueId, token: Token) {
        let ring = self.ring(queue);
        let ring = &mut self.rings[ring];
        let half = (ring.order.len() / 2).max(1);
        ring.promised = half;
        let until = ring.order.get(half - 1).map_or(0, |last| self.instances[*last].last_use);
        ring.holds.push_back(Hold { token, until, announced: false });
    }

    /// Interception knows of the hold of `token`. Returns whether the grant is to be returned at once.
    pub(crate) fn announce(&mut self, queue: QueueId, token: Token) -> bool {
        let ring = self.ring(queue);
        let ring = &mut self.rings[ring];
        let Some(hold) = ring.holds.iter_mut().find(|hold| hold.token == token) else { return false };
        hold.announced = true;
        if hold.until > ring.read {
            return false;
        }
        ring.holds.retain(|hold| hold.token != token);
        true
    }

    /// The instance of a use, for reading.
    pub(crate) fn instance(&self, used: Use) -> SharedInstance {
        Arc::clone(&self.instances[used.instance].shared)
    }

    /// The use was read, so its instance can be used again. Adds the grants that are to be returned to `returned`.
    pub(crate) fn put_back(&mut self, used: Use, returned: &mut Vec<Token>) {
        self.instances[used.instance].in_flight -= 1;
        let index = self.ring(used.queue);
        let ring = &mut self.rings[index];
        ring.read = ring.read.max(used.sequence);
        if ring.read == ring.used {
            ring.promised = 0;
        }
        let idle = |instance: usize| self.instances[instance].in_flight == 0;
        let mut position = 0;
        let promised = ring.promised;
        ring.order.retain(|&instance| {
            let stays = position < promised || !idle(instance);
            position += 1;
            if !stays {
                self.free.push(instance);
            }
            stays
        });
        while let Some(hold) = ring.holds.front().filter(|hold| hold.announced && hold.until <= ring.read) {
            returned.push(hold.token);
            ring.holds.pop_front();
        }
    }

    /// The use will never complete and the GPU may still write its output: the instance is not used again.
    pub(crate) fn give_up(&mut self, used: Use, returned: &mut Vec<Token>) {
        let lent = &mut self.instances[used.instance];
        if !lent.given_up {
            // Never idle again, so it stays out of the free list; its memory lives as long as the pool.
            lent.given_up = true;
            lent.in_flight += 1;
            self.alive -= 1;
        }
        self.put_back(used, returned);
    }

    /// Instances made so far.
    #[cfg(test)]
    fn made(&self) -> usize {
        self.instances.len()
    }

    /// Instances that a ring may have whatever others have.
    fn share(&self, ring: usize) -> usize {
        let others =
            self.rings.iter().enumerate().filter(|(index, other)| *index != ring && !other.is_idle());
        self.limit / (1 + others.count())
    }

    fn promised(&mut self, ring: usize) -> Option<usize> {
        let ring = &mut self.rings[ring];
        ring.promised = ring.promised.checked_sub(1)?;
        ring.order.pop_front()
    }

    fn add(&mut self, (packets, shared): (Packets, SharedInstance)) -> usize {
        self.instances.push(Instance { packets, shared, in_flight: 0, last_use: 0, given_up: false });
        self.alive += 1;
        self.instances.len() - 1
    }

    fn ring(&mut self, queue: QueueId) -> usize {
        if let Some(ring) = self.rings.iter().position(|ring| ring.queue == queue) {
            return ring;
        }
        // Queues come and go: the ring of one that has nothing in flight serves another.
        self.rings
            .iter()
            .position(Ring::is_idle)
            .inspect(|&ring| self.rings[ring].queue = queue)
            .unwrap_or_else(|| {
                let order = VecDeque::with_capacity(self.limit);
                let ring = Ring { queue, order, promised: 0, used: 0, read: 0, holds: VecDeque::new() };
                self.rings.push(ring);
                self.rings.len() - 1
            })
    }
}

impl Ring {
    fn is_idle(&self) -> bool {
        self.read == self.used && self.order.is_empty() && self.holds.is_empty()
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("in_flight", &self.in_flight)
            .field("last_use", &self.last_use)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
