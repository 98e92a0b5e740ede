//! The threads of trace services: each is announced, and the operating system lists no others. A program of its own with
//! one test: it looks at all threads of the process.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of the tests")]

#[path = "support/bed.rs"]
#[expect(dead_code, reason = "shared with tests that judge traces")]
mod bed;
#[path = "../../core/tests/threads/watch.rs"]
mod watch;

use bed::{Bed, PATIENCE, device_trace, run};
use watch::Watch;
use wavescope_core::GfxTarget;

/// Copies and delivers, for one context.
const COPY: &str = "wavescope-copy";
/// Owns the trace resources of one agent.
const TRACE: &str = "wavescope-trace";
/// Waits for the owner's queue.
const WAIT: &str = "wavescope-wait";

fn is_of_the_software_gpu(name: &str) -> bool {
    name.starts_with("gpu-queue-") || name.starts_with("hsa-")
}

// Field report G15.
#[test]
fn every_thread_is_announced_and_there_are_no_others() {
    let watch = Watch::begin(is_of_the_software_gpu);
    let bed = Bed::new(GfxTarget::GFX942, vec![]);
    let (trace, chunks, owner) = device_trace(&bed, 0, PATIENCE);
    assert_eq!(watch.created(), [COPY], "an owner that nobody uses has no thread");
    for _ in 0..2 {
        trace.start().unwrap();
        run(&bed.application, &bed.sample);
        assert_eq!(watch.created(), [COPY, WAIT, TRACE]);
        watch.wait_until_living(&watch.created());
        trace.stop().unwrap();
        assert!(!chunks.try_recv().unwrap().data.is_empty());
    }
    drop(trace);
    owner.shutdown().unwrap();
    watch.wait_until_living(&[]);
    assert_eq!(watch.created().len(), 3);
}
