//! Starting, stopping, conflicts, agents, refusals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use wavescope_core::ContextId;
use wavescope_counting::{Choice, CounterConfig, DispatchCounting, Error, PoolSize};
use wavescope_workload::{Launch, Queue};

use crate::rig::*;

/// Starts and stops of a test while dispatches run.
const RESTARTS: u32 = 20;

fn launch(rig: &Rig, gpu: usize, waves: u32) -> Launch {
    Launch::new(rig.kernel(gpu, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

on_both_faces! {
    /// Restart right after stop: each run delivers its own dispatches.
    fn two_runs_of_one_context_deliver_their_own_dispatches(rig on "gfx942") {
        let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(4))));
        let queue = rig.queue(0);
        for run in 1..=20 {
            counting.start().unwrap();
            counting.start().unwrap();
            assert!(counting.is_active());
            let submission = queue.submit(&batch([launch(rig, 0, run)])).unwrap();
            counting.stop(LIMIT).unwrap();
            counting.stop(LIMIT).unwrap();
            submission.wait(LIMIT).unwrap();
            queue.submit(&batch([launch(rig, 0, 1000)])).unwrap().wait(LIMIT).unwrap();
            assert_eq!(total(&records.try_recv().unwrap(), "SQ_WAVES"), f64::from(run));
            assert!(records.try_recv().is_none(), "the dispatch between two runs is nobody's");
        }
    }

    /// Dispatches go on while the service starts and stops: none hangs, and what is counted is counted right. With one
    /// instance every dispatch holds its grant, also those that are read while a start is under way.
    fn restarts_while_dispatches_run(rig on "gfx942") {
        let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(1))));
        let (queues, kernel, over) = ([rig.queue(0), rig.queue(0)], rig.kernel(0, "empty"), AtomicBool::new(false));
        let submit = |queue: &Queue| {
            // Ends by itself too, so that a failure below is not a hang.
            let go_on = || !over.load(Ordering::Relaxed);
            (0..50_000_u32).take_while(|_| go_on()).for_each(|n| {
                let one = Launch::new(kernel.clone(), [64 * (1 + n % 12), 1, 1], [64, 1, 1]);
                queue.submit(&batch([one])).unwrap().wait(LIMIT).unwrap();
            });
        };
        std::thread::scope(|scope| {
            let submitters = queues.each_ref().map(|queue| scope.spawn(|| submit(queue)));
            let mut counted = 0;
            // Each run lasts until it has counted something.
            for _ in 0..RESTARTS {
                counting.start().unwrap();
                while counting.summary().counted == counted && !submitters.iter().any(|one| one.is_finished()) {
                    std::thread::yield_now();
                }
                counting.stop(LIMIT).unwrap();
                assert!(counting.summary().counted > counted, "a run without dispatches");
                counted = counting.summary().counted;
            }
            over.store(true, Ordering::Relaxed);
            submitters.into_iter().for_each(|one| one.join().unwrap());
        });
        // An intercept queue cannot be asked where it is, so a kernel from before a run may overlap with its first.
        let exact = rig.interceptor.technique() == Some(Technique::Doorbell);
        let mut delivered = std::collections::HashSet::new();
        while let Some(counted) = records.try_recv() {
            let (waves, launched) = (total(&counted, "SQ_WAVES"), f64::from(counted.dispatch.grid[0] / 64));
            assert!(waves == launched || !exact && waves > launched, "{waves} waves of {launched}");
            assert!(delivered.insert(counted.dispatch.id), "{} came twice", counted.dispatch.id);
        }
        let summary = counting.summary();
        assert_eq!((summary.skipped, summary.lost, summary.seen), (0, 0, summary.counted));
        assert_eq!(delivered.len() as u64, summary.counted);
    }

    fn a_second_context_on_an_agent_is_refused_and_may_start_after_the_first_stopped(rig on "gfx942-x2") {
        let first_config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
        let (first, _first_records) = rig.counting(1, &[0], always(Arc::clone(&first_config)));
        let (second, records) = rig.counting(2, &[0], always(first_config));
        let (other, other_records) = rig.counting(3, &[1], always(rig.config(1, &["SQ_WAVES"], PoolSize(4))));
        first.start().unwrap();
        let error = second.start().unwrap_err();
        let Error::Conflict(conflict) = &error else { panic!("{error}") };
        assert_eq!((conflict.holder, conflict.contender), (ContextId(1), ContextId(2)));
        assert!(!second.is_active());
        other.start().unwrap();
        first.stop(LIMIT).unwrap();
        second.start().unwrap();
        let queues = [rig.queue(0), rig.queue(1)];
        for (gpu, queue) in queues.iter().enumerate() {
            let waves = gpu as u32 + 5;
            queue.submit(&batch([launch(rig, gpu, waves)])).unwrap().wait(LIMIT).unwrap();
        }
        second.stop(LIMIT).unwrap();
        other.stop(LIMIT).unwrap();
        for (records, waves) in [(records, 5.0), (other_records, 6.0)] {
            assert_eq!(total(&records.try_recv().unwrap(), "SQ_WAVES"), waves);
            assert!(records.try_recv().is_none());
        }
    }

    /// A configuration of another agent counts as none.
    fn a_configuration_of_another_agent_is_not_used(rig on "gfx942-x2") {
        let config = rig.config(1, &["SQ_WAVES"], PoolSize(4));
        let (counting, records) = rig.counting(1, &[0], always(config));
        counting.start().unwrap();
        rig.queue(0).submit(&batch([launch(rig, 0, 1)])).unwrap().wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        assert!(records.try_recv().is_none());
        assert_eq!(counting.summary().declined, 1);
    }

    /// A counter set may be chosen for each dispatch.
    fn counter_sets_rotate_over_dispatches(rig on "gfx942") {
        const SETS: [&[&str]; 3] = [&["SQ_WAVES"], &["GRBM_COUNT", "SQ_WAVES"], &["TCC_HIT", "SQ_WAVES"]];
        let configs = SETS.map(|names| rig.config(0, names, PoolSize(4)));
        let sets = configs.clone();
        let (counting, records) = rig.counting(1, &[0], move |dispatch| {
            let config = Arc::clone(&sets[dispatch.id.0 as usize % 3]);
            Choice { config: Some(config), user_data: 0 }
        });
        counting.start().unwrap();
        let launches = (1..=300).map(|waves| launch(rig, 0, waves));
        rig.queue(0).submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        for waves in 1..=300 {
            let counted = records.try_recv().unwrap();
            let config = &configs[counted.dispatch.id.0 as usize % 3];
            let found: Vec<_> = counted.records.iter().map(|record| (record.counter, record.position)).collect();
            assert_eq!(found, config.places());
            assert_eq!(total(&counted, "SQ_WAVES"), f64::from(waves));
        }
    }

    /// What retired before is delivered when `flush` returned.
    fn flush_waits_for_delivery(rig on "gfx942") {
        let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(4))));
        counting.start().unwrap();
        let queue = rig.queue(0);
        queue.submit(&batch([launch(rig, 0, 1)])).unwrap().wait(LIMIT).unwrap();
        counting.flush(LIMIT).unwrap();
        assert!(records.try_recv().is_some());
    }
}

fn refusal(rig: &Rig, names: &[&str]) -> String {
    let memory =
        Arc::new(wavescope_hsa_intercept::ProgramMemory::new(rig.interceptor.hsa().clone(), rig.agent(0).id));
    let programs = &wavescope_aql_profile::Builtin;
    CounterConfig::new(rig.agent(0), names, programs, memory, PoolSize(1)).unwrap_err().to_string()
}

on_both_faces! {
    /// A dispatch callback may stop its own context: it returns, and the dispatch is still delivered.
    fn a_callback_may_stop_its_context(rig on "gfx942") {
        let service = Arc::new(OnceLock::<DispatchCounting>::new());
        let inside = Arc::clone(&service);
        let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
        let (counting, records) = rig.counting(1, &[0], move |_| {
            let stopped = inside.get().map(|counting| counting.stop(LIMIT));
            assert!(matches!(stopped, None | Some(Ok(()) | Err(Error::Interception(_)))), "{stopped:?}");
            Choice { config: Some(Arc::clone(&config)), user_data: 0 }
        });
        counting.start().unwrap();
        assert!(service.set(counting).is_ok());
        let counting = service.get().unwrap();
        rig.queue(0).submit(&batch([launch(rig, 0, 3)])).unwrap().wait(LIMIT).unwrap();
        assert!(!counting.is_active());
        let counted = records.recv_timeout(LIMIT).unwrap();
        assert_eq!(total(&counted, "SQ_WAVES"), 3.0);
    }

    /// Refused when configured, with the block, what was asked and what there is; names are checked.
    fn impossible_configurations_are_refused_with_reasons(rig on "gfx942") {
        let sq = [
            "SQ_WAVES",
            "SQ_BUSY_CYCLES",
            "SQ_INSTS_VALU",
            "SQ_INSTS_SALU",
            "SQ_INSTS_SMEM",
            "SQ_INSTS_LDS",
            "SQ_WAVE_CYCLES",
            "SQ_WAIT_INST_ANY",
            "SQ_INSTS_BRANCH",
        ];
        let reason = refusal(rig, &sq);
        assert!(reason.contains("block SQ of gfx942 counts 8 events at once, 9 were asked for"), "{reason}");
        assert!(reason.contains("SQ_WAVE_CYCLES"), "{reason}");
        let reason = refusal(rig, &["SQ_WAVES", "SQ_WAVE"]);
        assert!(reason.contains("no counter `SQ_WAVE`; did you mean `SQ_WAVE"), "{reason}");
        let reason = refusal(rig, &["NO_SUCH"]);
        assert_eq!(reason, "gfx942 has no counter `NO_SUCH`");
        let reason = refusal(rig, &["MeanOccupancyPerCU"]);
        assert!(reason.contains("is computed ("), "{reason}");
        assert_eq!(refusal(rig, &[]), "no counter was asked for");
    }

    /// Eight of a block fit, in any order and also if some are named twice.
    fn a_full_block_is_accepted(rig on "gfx942") {
        let names = ["SQ_WAVES", "SQ_INSTS_VALU", "SQ_WAVES", "SQ_BUSY_CYCLES"];
        let config = rig.config(0, &names, PoolSize(1));
        assert_eq!(config.counters().len(), 3);
        // 32 shader engines, each with one sequencer counter per event.
        assert_eq!(config.places().len(), 3 * 32);
    }
}
