//! Who may measure what on an agent at one time.
//!
//! The monitors of an agent exist once: dispatch counting, device counting and thread trace *with* performance
//! counters exclude one another, thread trace excludes thread trace, and only thread trace *without*
//! performance counters goes together with counting. A context claims all its agents when it starts.
//!
//! ```
//! use wavescope_core::{AgentId, Claim, ClaimTable, ContextId};
//!
//! let table = ClaimTable::new();
//! let agent = AgentId(0);
//! table.claim(ContextId(1), &[(agent, Claim::DispatchCounting)])?;
//! table.claim(ContextId(2), &[(agent, Claim::Trace { perf_counters: false })])?;
//! let conflict = table.claim(ContextId(3), &[(agent, Claim::DeviceCounting)]).unwrap_err();
//! assert_eq!(conflict.holder, ContextId(1));
//! # Ok::<(), wavescope_core::Conflict>(())
//! ```

use std::fmt;

use crate::sync::Mutex;
use crate::{AgentId, ContextId};

/// What a context does with an agent while it is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// Counters for each dispatch.
    DispatchCounting,
    /// Counters of the whole agent.
    DeviceCounting,
    /// Thread trace, by device or by dispatch.
    Trace {
        /// Whether the trace streams performance counters, which occupy the SQ's counter registers.
        perf_counters: bool,
    },
}

impl Claim {
    /// Whether two contexts cannot hold these on one agent at a time.
    pub const fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Trace { .. }, Self::Trace { .. }) => true,
            (Self::Trace { perf_counters }, _) | (_, Self::Trace { perf_counters }) => perf_counters,
            (
                Self::DispatchCounting | Self::DeviceCounting,
                Self::DispatchCounting | Self::DeviceCounting,
            ) => true,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DispatchCounting => "dispatch counting",
            Self::DeviceCounting => "device counting",
            Self::Trace { perf_counters: true } => "thread trace with perf counters",
            Self::Trace { perf_counters: false } => "thread trace",
        })
    }
}

/// A claim that another context's claim excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{contender} cannot start {wanted} on {agent}: {holder} is active with {held}")]
pub struct Conflict {
    /// The agent both want.
    pub agent: AgentId,
    /// The active context.
    pub holder: ContextId,
    /// What it holds.
    pub held: Claim,
    /// The refused context.
    pub contender: ContextId,
    /// What it asked for.
    pub wanted: Claim,
}

/// The claims of all active contexts of the process. Its lock is a leaf: nothing else is taken under it.
#[derive(Debug)]
pub struct ClaimTable {
    /// Equal ones stand as often as they were claimed.
    held: Mutex<Vec<(ContextId, AgentId, Claim)>>,
}

impl ClaimTable {
    /// An empty table.
    pub fn new() -> Self {
        Self { held: Mutex::new(Vec::new()) }
    }

    /// Claims everything in `wanted` for `context`, or nothing. Claims it holds already are fine: each is held until
    /// it was released as often as it was claimed, since two services of a context know nothing of each other.
    ///
    /// # Errors
    /// [`Conflict`] with the first claim that is excluded. A context's own claims of another kind count too:
    /// the registers do not care who programs them.
    pub fn claim(&self, context: ContextId, wanted: &[(AgentId, Claim)]) -> Result<(), Conflict> {
        let mut held = self.held.lock();
        let mut fresh = Vec::with_capacity(wanted.len());
        for &(agent, claim) in wanted {
            let entry = (context, agent, claim);
            let excludes = |rival: &&(ContextId, AgentId, Claim)| {
                **rival != entry && rival.1 == agent && rival.2.excludes(claim)
            };
            let mut others = held.iter().chain(&fresh);
            if let Some(&(holder, _, held)) = others.find(excludes) {
                return Err(Conflict { agent, holder, held, contender: context, wanted: claim });
            }
            fresh.push(entry);
        }
        held.append(&mut fresh);
        Ok(())
    }

    /// Gives back one claim, once; unknown ones are ignored.
    pub fn release(&self, context: ContextId, agent: AgentId, claim: Claim) {
        let mut held = self.held.lock();
        // The latest of equal ones, so that the order of the others stays.
        if let Some(index) = held.iter().rposition(|entry| *entry == (context, agent, claim)) {
            held.remove(index);
        }
    }

    /// Gives back all claims of a context.
    pub fn release_all(&self, context: ContextId) {
        self.held.lock().retain(|entry| entry.0 != context);
    }

    /// The contexts with a claim on `agent`, each claim once, in the order of their claims.
    pub fn holders(&self, agent: AgentId) -> Vec<(ContextId, Claim)> {
        let mut holders = Vec::new();
        for &(context, _, claim) in self.held.lock().iter().filter(|entry| entry.1 == agent) {
            if !holders.contains(&(context, claim)) {
                holders.push((context, claim));
            }
        }
        holders
    }
}

impl Default for ClaimTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const DC: Claim = Claim::DispatchCounting;
    const DEV: Claim = Claim::DeviceCounting;
    const TP: Claim = Claim::Trace { perf_counters: true };
    const T: Claim = Claim::Trace { perf_counters: false };
    const A: AgentId = AgentId(0);
    const B: AgentId = AgentId(1);

    /// The claim matrix written out, row against column; `x` excludes, `.` goes together.
    const MATRIX: [(Claim, &str); 4] = [(DC, "xxx."), (DEV, "xxx."), (TP, "xxxx"), (T, "..xx")];

    #[test]
    fn every_pair_is_as_in_the_matrix() {
        for (first, row) in MATRIX {
            for (second, cell) in [DC, DEV, TP, T].into_iter().zip(row.chars()) {
                let table = ClaimTable::new();
                table.claim(ContextId(1), &[(A, first)]).unwrap();
                let result = table.claim(ContextId(2), &[(A, second)]);
                assert_eq!(result.is_err(), cell == 'x', "{first} then {second}");
                assert!(table.claim(ContextId(3), &[(B, second)]).is_ok(), "another agent is free");
            }
        }
    }

    #[test]
    fn claim_taken_twice_by_one_context_is_held_until_both_are_released() {
        let table = ClaimTable::new();
        table.claim(ContextId(1), &[(A, T)]).unwrap();
        table.claim(ContextId(1), &[(A, T), (A, T)]).unwrap();
        for _ in 0..2 {
            table.release(ContextId(1), A, T);
            assert_eq!(table.holders(A), [(ContextId(1), T)]);
            assert!(table.claim(ContextId(2), &[(A, T)]).is_err());
        }
        table.release(ContextId(1), A, T);
        table.release(ContextId(1), A, T); // one more than was claimed
        table.claim(ContextId(2), &[(A, T)]).unwrap();
    }

    #[test]
    fn conflict_leaves_what_the_context_held_before() {
        let table = ClaimTable::new();
        table.claim(ContextId(1), &[(A, T)]).unwrap();
        table.claim(ContextId(2), &[(B, T)]).unwrap();
        table.claim(ContextId(1), &[(A, T), (B, T)]).unwrap_err();
        table.release(ContextId(1), A, T);
        assert_eq!(table.holders(A), []);
    }

    #[test]
    fn conflict_names_contexts_claims_and_agent_and_takes_nothing() {
        let table = ClaimTable::new();
        table.claim(ContextId(1), &[(B, T)]).unwrap();
        let conflict = table.claim(ContextId(2), &[(A, T), (B, TP)]).unwrap_err();
        assert_eq!(
            conflict.to_string(),
            "context 2 cannot start thread trace with perf counters on agent 1: \
             context 1 is active with thread trace"
        );
        assert_eq!(table.holders(A), []);
    }

    #[test]
    fn release_all_frees_every_agent_of_one_context_only() {
        let table = ClaimTable::new();
        table.claim(ContextId(1), &[(A, DC), (B, DC)]).unwrap();
        table.claim(ContextId(2), &[(A, T)]).unwrap();
        table.release_all(ContextId(1));
        assert_eq!((table.holders(A), table.holders(B)), (vec![(ContextId(2), T)], vec![]));
    }

    #[test]
    fn one_context_cannot_count_and_trace_with_perf_counters() {
        let table = ClaimTable::new();
        let conflict = table.claim(ContextId(1), &[(A, DC), (A, TP)]).unwrap_err();
        assert_eq!((conflict.holder, conflict.contender), (ContextId(1), ContextId(1)));
    }
}
