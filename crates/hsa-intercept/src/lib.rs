//! Interception of an HSA runtime: its API table, the packets of its queues, the code that it loads.
//!
//! [`Interceptor`] sits in the table that a runtime hands to its tools. It implements
//! [`Interception`](wavescope_core::Interception): services subscribe, are asked for a packet program before each
//! kernel is enqueued, and are told when its packets retired. It also knows which kernel a dispatch names, and gives
//! packet programs memory ([`ProgramMemory`]).
//!
//! [`Engine`] is the same without a table, on any [`Device`]: queues are told to it, batches are passed through it. Tests,
//! models and benches use it.
//!
//! This crate must not know what the packets of a subscriber measure.
//!
//! ```no_run
//! use std::sync::Arc;
//! use wavescope_core::{Interception, Topology};
//! use wavescope_hsa_intercept::{Interceptor, Options};
//!
//! # fn table() -> *mut hsa_sys::HsaApiTable { std::ptr::null_mut() }
//! let topology = Topology::read(Topology::SYSFS.as_ref())?;
//! // SAFETY: the table that the runtime handed to `OnLoad`, before anybody else uses it.
//! let interceptor = unsafe { Interceptor::install(table(), Some(&topology), Options::default()) }?;
//! let interception: Arc<dyn Interception> = interceptor.clone();
//! // ... services subscribe ...
//! interceptor.shut_down()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it is built
//!
//! | file | one idea |
//! |---|---|
//! | `interceptor/` | interception of one runtime, what its entries answer, and the runtime's end |
//! | `table`, `patch` | our entries in the runtime's table, and the way back |
//! | `application_queues` | the application's queues by address, whichever technique made them |
//! | `runtime_queue` | technique `runtime`: the runtime's intercept queues |
//! | `late_end` | an intercept queue that ends under its own hook |
//! | `front/` | technique `doorbell`: a ring, indices and doorbell of ours before a plain queue |
//! | `gate` | nothing calls a runtime that may be going down, or is gone |
//! | `engine`, `agent`, `queue` | agents, queues, subscriptions |
//! | `snapshot` | the subscribers of an agent, swapped whole while hooks read them |
//! | `rewrite`, `packets` | from the application's batch to what goes into the ring |
//! | `serializer` | which queue of an agent may run kernels: a pure state machine |
//! | `transition` | serialization begins on queues that are busy |
//! | `flight`, `reaper`, `pace` | what is in flight, the thread that sees it retire, and how often it looks |
//! | `times` | kernel times for the application |
//! | `code_objects` | loaded code and its kernels |
//!
//! Locks, outermost first: the registry of subscriptions; a front's reader; a queue's scratch space; then leaves
//! (serializer, flight, times, lists), none of which is held while another is taken, while a subscriber runs, or
//! while the runtime is called for more than a signal (but `times` asks for a kernel's times, so that its signal is not
//! recycled meanwhile). Subscribers are asked with only the queue's own scratch space locked, and are told of
//! retirements with nothing locked.
//!
//! # What the two techniques can do
//!
//! | | `runtime` | `doorbell` |
//! |---|---|---|
//! | batches | at most 256 packets waiting around the end of the ring: ROCr 7.2.4 writes past a buffer with more | any |
//! | kernels that went through before a measurement starts | may overlap with its first kernels if another queue runs them | awaited at a mark, for the watchdog's time at most; then records say that they had company |
//! | threads | the runtime's event thread takes part and does not sleep while packets wait | one of ours, for full rings and for devices that ring |
//! | thread of a record, if several feed one queue | may be the one that rang, not the one that submitted | the one that reserved the slot, or unknown |
//! | a callback destroys its queue | at once for the application, for the runtime when it returned | at once |
//! | doorbells rung by a device | not heard by ROCr 7.2.4, with any hook: the signal block that devices see is a copy | heard within 50 ms, within 1 ms while there are more |
//! | runtime-internal queues (copies, fills) | untouched | untouched |
//! | a forked child that rings its parent's queue | ends by SIGSEGV in ROCr 7.2.4, with any hook and without one: a child has none of the memory that is mapped for GPUs | nothing happens |
//!
//! `auto` takes `doorbell` ([`Technique::AUTO`]): batches of any length, no part of the runtime's event thread. With `runtime`
//! a backlog of more than 256 packets around the end of the ring crashes the application. Cost does not decide: on ROCr the
//! two are nearer to each other than runs of one of them. All figures: `docs/cost.md` of this crate.
//!
//! ROCr 7.2.4's `hsa_amd_signal_wait_any` writes behind a heap array when any but the first three signals is the one that
//! is satisfied, so nothing here waits for several signals: retirements of all queues ring one bell.
//!
//! # The end of a runtime
//!
//! ROCr answers no call any more when it unloads its tools, so a tool that ends then can destroy no signal, and ROCr reports
//! them as leaked. Our entry of `hsa_shut_down` therefore destroys what is kept for queues that are gone (time carriers,
//! gates, retire counters, doorbells of fronts) and the reaper's bell, before it passes the call on. With a queue left it
//! destroys nothing: packets may still name those signals. It need not be the last `hsa_shut_down`: the next queue that is
//! measured gets a new bell. Around the call a gate is shut (`gate`): no thread of ours is inside the runtime, but for a tool
//! that is unloaded and waits for its dispatches. If the runtime does not answer any more after it, the gate stays shut for
//! good: fronts that are left do nothing, and what was in flight is lost. A limit: if another thread calls `hsa_init` between
//! the return of the last `hsa_shut_down` and our look, the new runtime is taken for the old one (`table::ends`;
//! `table::install::the_end_of_the_runtime_finds_no_signal_of_ours`, and `counting`'s
//! `lifecycle::ends::the_tool_leaves_no_signal_behind` by ROCr's own count).
//!
//! # What is modelled
//!
//! `cargo xtask loom hsa-intercept` runs these under loom, on the product's own types. Each has a twin with one step switched
//! (`fault`, only there) that fails.
//!
//! | file of `tests/` | models |
//! |---|---|
//! | `loom_engine` | subscribers swapped under hooks, drains, ends of queues, holds, grants and lanes against the reaper |
//! | `loom_ends` | the gate against who ends a runtime, who waits there and who is exempt; farewells (`let_go`) against the reaper, a new queue, each other and the shutdown |
//! | `loom_fronts` | look-up of a front against its removal and the next one in its place; visits in a row against a front or snapshot that goes; the end of a front against its readers |
//!
//! Not modelled: time (no limit passes, but one of nothing); the kernel's `membarrier` in place of an entry's own barrier;
//! fronts whole, with memory and hardware queue of a runtime; intercept queues; entries of the table and the order in which
//! they call what is modelled; forks.
//!
//! # Field reports
//!
//! What users of such tools reported, and the test that holds this crate to it (`suite` is the test program of this
//! crate, `counting` that of `wavescope-counting`, whose tests run with both techniques and on the real runtime too).
//!
//! | report | here |
//! |---|---|
//! | G01 rocprofiler 113 | `suite::serialization::two_agents_driven_by_two_threads_finish`, `counting`'s `reports::two_threads_count_on_two_gpus_under_stress` |
//! | G02 rocm-systems 10143 | `suite::reports::kernels_of_many_agents_can_all_begin_before_any_ends`, `counting`'s `dependent::a_collective_over_many_gpus_ends` |
//! | G03 rocm-systems 8095 | `suite::reports::slow_dispatches_neither_pile_up_signals_nor_hold_back_other_queues`, `counting`'s `reports::slow_dispatches_hold_nobody_back_and_pile_up_no_signals_under_stress` |
//! | G04 rocm-systems 7477 | `suite::emission::counted_kernel_stands_between_start_and_forward_read_stop` |
//! | G05 rocm-systems 10405 | `loom_engine::a_destroyed_queue_keeps_its_signals_until_the_reaper_left_it`, `table::fronts::a_queue_is_destroyed_once`, `table::churn::a_thread_submits_while_another_destroys_and_creates_queues`, `counting`'s `queues::queues_destroyed_with_work_on_its_way_lose_nothing_under_stress` |
//! | G06 rocm-systems 10994 | `stress::toggled::each_kernel_runs_once_and_is_recorded_once_inside_a_window_and_never_outside`, `counting`'s `stress::everything_is_counted_once_under_stress` |
//! | G07 rocm-systems 8212 | `suite::emission::nobody_subscribed_means_identical_packets_and_no_signal` |
//! | G08 rocm-systems 4361 | `suite::reports::a_batch_of_4096_gives_4096_records_a_hundred_times`, `counting`'s `reports::one_doorbell_for_4096_kernels_gives_4096_records_under_stress` |
//! | G09 rocm-systems 6824 | `loom_engine::a_drain_ends_with_the_last_retirement_and_nothing_comes_after_it`, `counting`'s `lifecycle::ends::a_process_ends_with_work_on_its_way_under_stress` |
//! | G10 pytorch 189110 | `counting`'s `lifecycle::ends::exit_in_a_constructor_ends_the_process` |
//! | G11 legacy-rocm-build 6577 | `counting`'s `lifecycle::loads::threads_may_load_code_at_once` |
//! | G12 rocm-systems 6641 | `counting`'s `lifecycle::loads::the_first_use_may_be_in_a_constructor` |
//! | G13 rocm-systems 4358 | `counting`'s `lifecycle::signals::the_tool_installs_no_handlers`, `lifecycle::signals::handlers_of_the_application_run` |
//! | G14 rocm-systems 8007 | of whoever starts device-wide traces; here a subscription needs no queue, and each is intercepted as it is made |
//! | G15 HPCToolkit (sdk 44) | `threads::announced::every_thread_is_announced_before_and_after_it_is_created`, `counting`'s `threads::announced` |
//! | G16 rocm-systems 6504 | `counting`'s `lifecycle::forks::a_shell_with_the_tool_preloaded_knows_nothing_of_it` |
//! | G17 rocm-systems 5744 | `table::fork::a_child_may_call_and_end_everything_and_nothing_waits`, `counting`'s `lifecycle::forks::children_leave_and_the_parent_goes_on`, `lifecycle::forks::children_are_inert` |
//! | G18 rocm-systems 4008 | of whoever writes files: nothing is written here; the tool of `counting`'s `lifecycle` writes one file for each process |
//! | G19 rocm-systems 5902 | of whoever writes files; `counting`'s `lifecycle::ends::what_a_killed_process_leaves_can_be_read` |
//! | G20 rocm-systems 3397 | `suite::tracing::records_say_whether_kernels_were_serialized_and_whether_the_agent_is_blind`, `counting`'s `reports::records_of_two_queues_say_whether_they_were_serialized` |
//! | G39 rocm-systems 1533 | `counting`'s `counters::counter_sets_rotate_over_dispatches`: a program is asked for at each dispatch |
//! | G40 rocm-systems 7960 | kernels are not replayed; bounded waits: `suite::robustness::queues_destroyed_after_the_shutdown_give_back_their_signals` and its neighbours |
//! | G50 rocm-systems 6651 | of `wavescope-att-decode`, which cuts traces |
//! | G56 tinygrad 9278 | of `wavescope-att-resources`: `engine_that_stays_busy_is_an_error_in_time_and_leaves_the_application_alone` |
//! | G62 rocm-systems 7435, G63 rocm-systems 6228 | `code_objects::tests::kernels_are_found_by_descriptor_address`, `counting`'s `code_objects::a_code_object_from_memory_is_what_the_loader_says` and its neighbours |
//! | G64 rocm-systems 8395 | of `wavescope-att-decode`: `a_reused_address_takes_its_objects_in_order`; ids here are of one process, and no file is written |
//! | G73 dynolog 323 | no lock file and no lock of a device is taken here; counters are claimed in the process's memory (`wavescope-core`'s `ClaimTable`) |
//! | G75 rocm-systems 8756 | `counting`'s `lifecycle::loads::the_second_copy_of_a_tool_keeps_out` |
//! | G80 pti-gpu 83 | `table::install::a_runtime_without_intercept_queues_is_refused_only_for_the_technique_that_needs_them`: the error names the call; kernels in records: `counting`'s `code_objects::a_code_object_from_a_file_is_what_the_loader_says` |
//! | G81 rocm-systems 5348 | `table::others::a_queue_that_was_there_before_makes_its_agent_blind`, `counting`'s `suite::blind` |

mod agent;
mod application_queues;
mod blind;
mod code_objects;
mod copies;
mod correlation;
mod device;
mod engine;
mod error;
#[cfg(not(loom))]
mod fault;
#[cfg(loom)]
pub mod fault;
mod flight;
mod front;
mod gate;
mod hsa_device;
mod interceptor;
mod kernel_trace;
mod late_end;
mod local;
#[cfg(loom)]
pub mod model;
mod pace;
mod packets;
mod patch;
mod process;
mod program_memory;
mod queue;
mod reaper;
mod rewrite;
mod runtime_queue;
mod runtime_thread;
mod serializer;
mod signal_entries;
mod snapshot;
mod subscribers;
mod table;
mod technique;
mod thread_mark;
mod threads;
mod times;
mod transition;

pub use blind::OtherQueues;
pub use code_objects::{CodeObject, CodeObjectListener, Kernel};
pub use correlation::{ApiCall, CorrelationIds, pop_external, push_external};
pub use device::{Device, Signal, SignalKind};
pub use engine::{Engine, QueueHandle};
pub use error::Error;
pub use hsa_device::HsaDevice;
pub use interceptor::{Interceptor, Options};
pub use kernel_trace::{KernelTracer, TracedKernel, Tracing};
pub use program_memory::ProgramMemory;
pub use technique::Technique;
pub use threads::{ThreadNotice, announce_threads};
