//! Dispatches that are being counted on one agent.
//!
//! A token names the use of an instance by a dispatch: the agent's place in the service, whether the dispatch holds
//! its grant, and the slot in the agent's [`InFlight`] store, all in the token's index.

use std::sync::Arc;

use wavescope_aql_profile::{QueueCommand, QueuePacket};
use wavescope_core::sync::Mutex;
use wavescope_core::{AgentId, AqlPacket, Company, Dispatch, InFlight, Outcome, QueueId, Token};

use crate::config::CounterConfig;
use crate::pool::Use;

/// Set in the index of a token whose dispatch holds its grant.
const HOLDS: u32 = 1 << 31;
const SLOT_BITS: u32 = 20;

/// Dispatches of one agent that may be counted at a time: more than its queues' rings usually hold. Beyond it a
/// dispatch is skipped and said to be. Slots are address space until they are used.
const CAPACITY: usize = 1 << 15;

/// A dispatch being counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) config: Arc<CounterConfig>,
    pub(crate) used: Use,
    pub(crate) dispatch: Dispatch,
    pub(crate) user_data: u64,
}

/// What is in flight on one agent. Its locks are taken by hooks of the agent's queues and by the actor.
#[derive(Debug)]
pub(crate) struct AgentUses {
    pub(crate) agent: AgentId,
    pub(crate) in_flight: Mutex<InFlight<Counted>>,
    /// Retired and not yet read. While it is not empty, a notice of it is on its way to the actor, so that one place
    /// in the mailbox is enough for an agent, and memory grows with what retires while a client is slow, not before.
    retired: Mutex<Vec<Ended>>,
    enabled: Mutex<Enabled>,
}

/// A counted dispatch that retired, or never will.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) token: Token,
    pub(crate) outcome: Outcome,
    pub(crate) company: Company,
}

/// Which queues were told to take part in counting.
#[derive(Debug, Default)]
struct Enabled {
    packet: Option<QueuePacket>,
    queues: Vec<QueueId>,
}

impl AgentUses {
    pub(crate) fn new(agent: AgentId) -> Self {
        let in_flight = Mutex::new(InFlight::with_capacity(CAPACITY));
        Self { agent, in_flight, retired: Mutex::default(), enabled: Mutex::new(Enabled::default()) }
    }

    /// Adds a dispatch to those that retired. Returns whether the actor is to be told.
    pub(crate) fn retire(&self, ended: Ended) -> bool {
        let mut retired = self.retired.lock();
        retired.push(ended);
        retired.len() == 1
    }

    /// Exchanges what retired for `empty`.
    pub(crate) fn take_retired(&self, empty: &mut Vec<Ended>) {
        std::mem::swap(&mut *self.retired.lock(), empty);
    }

    /// The packet that lets the work of `queue` be counted, the first time.
    pub(crate) fn enable(&self, queue: QueueId, config: &CounterConfig) -> Option<AqlPacket> {
        let mut enabled = self.enabled.lock();
        if enabled.queues.contains(&queue) {
            return None;
        }
        if enabled.packet.is_none() {
            let made = QueuePacket::new(config.shape(), QueueCommand::Enable, config.memory());
            enabled.packet = made.inspect_err(|error| tracing::warn!(%error, "queue not enabled")).ok();
        }
        let packet = enabled.packet.as_ref()?.packet;
        enabled.queues.push(queue);
        Some(packet.into_vendor_specific(false))
    }
}

/// The token of a slot of the agent at `place`.
pub(crate) fn token(place: usize, holds: bool, slot: Token) -> Token {
    let holds = if holds { HOLDS } else { 0 };
    Token { index: holds | (place as u32) << SLOT_BITS | slot.index, generation: slot.generation }
}

/// Whether the dispatch of a token holds its grant.
pub(crate) const fn holds(token: Token) -> bool {
    token.index & HOLDS != 0
}

/// The agent's place and the slot of a token.
pub(crate) const fn parts(token: Token) -> (usize, Token) {
    let index = token.index & !HOLDS;
    let slot = Token { index: index & ((1 << SLOT_BITS) - 1), generation: token.generation };
    ((index >> SLOT_BITS) as usize, slot)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_agent_hold_and_slot() {
        let slot = Token { index: CAPACITY as u32 - 1, generation: 7 };
        for held in [false, true] {
            let token = token(63, held, slot);
            assert_eq!((holds(token), parts(token)), (held, (63, slot)));
        }
    }
}
