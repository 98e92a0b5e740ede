//! Why counters cannot be collected.

use wavescope_core::{AgentId, Conflict, ContextId, GfxTarget, InterceptionError};

/// An error of the counting crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No counters are defined for the agent's target.
    #[error("no counters are known for {target} ({agent})")]
    NoCatalogue {
        /// The agent.
        agent: AgentId,
        /// Its target.
        target: GfxTarget,
    },
    /// A name that the target does not have.
    #[error("{target} has no counter `{name}`{}", suggestion(*.closest))]
    UnknownCounter {
        /// The target.
        target: GfxTarget,
        /// The name as given.
        name: String,
        /// A name of the target that looks like it.
        closest: Option<&'static str>,
    },
    /// A counter that is computed from others, where only hardware counters can be collected.
    #[error("`{name}` of {target} is computed ({expression}): collect the hardware counters in it")]
    Derived {
        /// The target.
        target: GfxTarget,
        /// The counter.
        name: &'static str,
        /// What it is computed from.
        expression: &'static str,
    },
    /// More counters of one block than it can count at once.
    #[error("block {block} of {target} counts {available} events at once, {asked} were asked for: {}", names.join(", "))]
    OverCapacity {
        /// The target.
        target: GfxTarget,
        /// The block.
        block: &'static str,
        /// Counters asked for.
        asked: u32,
        /// Counters of one instance of the block.
        available: u32,
        /// The counters.
        names: Vec<&'static str>,
    },
    /// A configuration without a counter.
    #[error("no counter was asked for")]
    Empty,
    /// The packet program could not be made.
    #[error("no packet program for {agent}")]
    Program {
        /// The agent.
        agent: AgentId,
        /// Why.
        #[source]
        source: wavescope_aql_profile::Error,
    },
    /// Another context holds what this one needs.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Interception refused, or its dispatches did not retire in time.
    #[error(transparent)]
    Interception(#[from] InterceptionError),
    /// The counting actor could not be started, or is gone.
    #[error(transparent)]
    Actor(#[from] wavescope_core::Error),
    /// Counters did not arrive in time.
    #[error("{context}: {in_flight} dispatches were not counted to the end within {waited:?}")]
    Undelivered {
        /// The context.
        context: ContextId,
        /// How many dispatches are in flight.
        in_flight: usize,
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// The context is being stopped, or dispatches from before the last stop have not retired.
    #[error("{context} cannot start yet: {in_flight} dispatches of its last run are in flight")]
    Busy {
        /// The context.
        context: ContextId,
        /// How many dispatches.
        in_flight: usize,
    },
}

fn suggestion(closest: Option<&'static str>) -> String {
    closest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
