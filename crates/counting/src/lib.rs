//! Hardware counters for every kernel dispatch: definitions, configurations, the dispatch counting service.
//!
//! A [`CounterConfig`] is a checked set of counters on an agent. [`DispatchCounting`] asks a callback which one to use
//! for each dispatch, lends the dispatch an instance of its packet program, reads the instance when the dispatch
//! retired, and delivers [`DispatchCounters`](wavescope_core::DispatchCounters). [`Catalogue`] holds the counter
//! definitions of every target.
//!
//! This crate sees of interception only the seam in the core crate, and knows nothing of thread trace.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wavescope_aql_profile::{Builtin, Memory};
//! use wavescope_core::{Agent, ClaimTable, ContextId, Interception, Overflow, record_stream};
//! use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
//!
//! # fn run(agent: Agent, memory: Arc<dyn Memory>, interception: Arc<dyn Interception>)
//! # -> Result<(), wavescope_counting::Error> {
//! let config = CounterConfig::new(&agent, &["SQ_WAVES"], &Builtin, memory, PoolSize::default())?;
//! let (sink, counters) = record_stream(1024, Overflow::DropNewest);
//! let counting = DispatchCounting::new(Setup {
//!     context: ContextId(1),
//!     agents: vec![agent.id],
//!     interception,
//!     claims: Arc::new(ClaimTable::new()),
//!     choose: Arc::new(move |_| Choice { config: Some(Arc::clone(&config)), user_data: 0 }),
//!     delivery: Delivery::Stream(sink),
//! })?;
//! counting.start()?;
//! // ... the application dispatches kernels ...
//! counting.stop(Duration::from_secs(10))?;
//! while let Some(dispatch) = counters.try_recv() {
//!     println!("{}: {} values", dispatch.dispatch.id, dispatch.records.len());
//! }
//! # Ok(())
//! # }
//! ```

mod actor;
mod catalogue;
mod config;
mod error;
mod places;
mod pool;
mod programs;
mod service;
mod subscriber;
mod uses;

pub use catalogue::{BaseCounter, Catalogue, DerivedCounter};
pub use config::{CounterConfig, PoolSize};
pub use error::Error;
pub use service::{Choice, Choose, Delivery, DispatchCounting, Setup, Summary};
