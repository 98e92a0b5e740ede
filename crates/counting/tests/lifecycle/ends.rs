//! How processes end.

use crate::bench::{Bench, Technique};
use crate::on_both_faces;

/// Runs of what races with the end of the process.
fn runs() -> u32 {
    let is_long = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "stress");
    if is_long { 200 } else { 15 }
}

on_both_faces! {
    fn an_application_that_shuts_down_is_counted_to_the_end(bench) {
        bench.run(bench.application("ends", None)).left_with(0).counted(10).went_down_after(10);
    }

    /// Work is queued, nobody waits for it, main returns: no crash, no hang, and what was delivered is right.
    fn a_process_ends_with_work_on_its_way_under_stress(bench) {
        for _ in 0..runs() {
            let ended = bench.run(bench.application("forgets", None)).left_with(0);
            let mut seen = std::collections::HashSet::new();
            for (dispatch, waves) in ended.records.dispatches {
                assert_eq!(dispatch, waves);
                assert!(seen.insert(dispatch), "{dispatch} was delivered twice");
            }
        }
    }

    /// Without `hsa_shut_down` nobody tells the tool.
    fn a_process_ends_without_shutting_down_under_stress(bench) {
        for _ in 0..runs() {
            bench.run(bench.application("leaves", None)).left_with(0);
        }
    }

    /// Every line of a process that was killed is whole and right.
    fn what_a_killed_process_leaves_can_be_read(bench) {
        const SOME: usize = 20;
        let mut running = bench.start(bench.application("lasts", None));
        running.wait_for(SOME);
        running.kill();
        let ended = running.end(crate::bench::SOON);
        assert_eq!(ended.status.code(), None);
        let records = ended.records;
        assert!(records.ends.is_empty(), "{records:?}");
        assert!(records.dispatches.len() >= SOME, "{records:?}");
        for (index, (dispatch, waves)) in records.dispatches.into_iter().enumerate() {
            assert_eq!((dispatch, waves), (index as u64 + 1, 1 + (index as u64 + 1) % 50));
        }
    }

    /// The library that comes after the tool ends the process from its constructor, under the loader's lock.
    fn exit_in_a_constructor_ends_the_process(bench) {
        let exits = bench.library("exits");
        for mode in ["loads-first", "loads"] {
            let ended = bench.run(bench.application(mode, Some(&exits))).left_with(1);
            assert!(!ended.printed.contains("returned"), "{}", ended.printed);
        }
    }

    /// The runtime goes down with a queue of the application, and the process lives on: nothing of ours touches what went.
    fn an_application_may_shut_down_without_destroying_its_queue(bench) {
        let ended = bench.run(bench.application("abandons", None)).left_with(0);
        assert!(ended.printed.contains("still here"), "{}", ended.printed);
        ended.counted(10).went_down_after(10);
    }

    /// With work on its way, and up again; in between one that is not the last.
    fn the_runtime_may_come_up_again_after_it_went_down_with_a_queue(bench) {
        let ended = bench.run(bench.application("abandons-again", None)).left_with(0);
        assert!(ended.printed.contains("round 2"), "{}", ended.printed);
        assert_eq!(ended.records.ends.len(), 3, "{:?}", ended.records);
    }

    fn the_runtime_may_come_up_again(bench) {
        let ended = bench.run(bench.application("restarts", None)).left_with(0);
        let mut dispatches = ended.records.dispatches;
        dispatches.sort_unstable_by_key(|(_, waves)| *waves);
        let waves: Vec<_> = dispatches.iter().map(|(_, waves)| *waves).collect();
        assert_eq!(waves, (1..=30).collect::<Vec<_>>());
        assert_eq!(ended.records.ends, ["end: 10 seen, 10 counted"; 3]);
    }
}

/// The runtime itself counts the signals that are left when it goes down: as many as without the tool.
fn the_tool_leaves_no_signal_behind(bench: &Bench) {
    for (mode, ends) in [("ends", 1), ("restarts", 3)] {
        let mut bare = bench.application(mode, None);
        bare.env_remove("HSA_TOOLS_LIB");
        let without = bench.run(bare).left_with(0).leaks;
        assert_eq!(without.len(), ends, "the runtime's own are counted");
        let ended = bench.run(bench.application(mode, None)).left_with(0);
        assert_eq!(ended.records.ends.len(), ends);
        assert_eq!(ended.leaks, without, "{mode}");
    }
}

#[test]
fn the_tool_leaves_no_signal_behind_with_fronts() {
    Bench::on_rocr(Technique::Doorbell, the_tool_leaves_no_signal_behind);
}

#[test]
fn the_tool_leaves_no_signal_behind_with_intercept_queues() {
    Bench::on_rocr(Technique::Runtime, the_tool_leaves_no_signal_behind);
}
