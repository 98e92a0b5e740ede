//! Services restricted to an agent leave the others alone, and contexts exclude each other only where they meet.

use std::sync::Arc;

use wavescope_att_resources::{Decision, Error};
use wavescope_tests::{Bed, PATIENCE, What, count, on_both_faces, total, trace, waves};

use crate::run::{self, launch};

const GRID: [u32; 3] = [1000, 3, 1];
const GROUP: [u16; 3] = [128, 2, 1];

/// Runs `times` dispatches on one GPU and waits for them.
fn run(bed: &Bed, gpu: u32, times: usize) {
    run::run(bed, gpu, vec![launch(bed, gpu, GRID, GROUP); times]);
}

on_both_faces! {
    fn counting_one_agent_sees_nothing_of_the_other(bed on ["gfx942-x2"]) {
        let counted = count(bed, 1, 0, &["SQ_WAVES"]);
        counted.service.start().unwrap();
        run(bed, 1, 3);
        run(bed, 0, 2);
        counted.service.stop(PATIENCE).unwrap();
        let records = counted.take();
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|record| record.dispatch.agent == bed.agent(0).id));
        assert_eq!(counted.service.summary().seen, 2);
        // The other GPU did run them.
        assert_eq!(bed.placement.dispatches(1).len(), 3);
    }

    fn contexts_on_disjoint_agents_count_at_once_and_on_the_same_agent_conflict(bed on ["gfx942-x2"]) {
        let counted = [count(bed, 1, 0, &["SQ_WAVES"]), count(bed, 2, 1, &["SQ_WAVES"])];
        counted.iter().for_each(|counted| counted.service.start().unwrap());
        let third = count(bed, 3, 1, &["SQ_WAVES"]);
        let refusal = third.service.start().unwrap_err().to_string();
        for word in ["context 3", "context 2", "agent 1"] {
            assert!(refusal.contains(word), "{refusal}");
        }
        std::thread::scope(|scope| {
            for gpu in 0..2 {
                scope.spawn(move || run(bed, gpu, 20));
            }
        });
        for counted in &counted {
            counted.service.stop(PATIENCE).unwrap();
            let records = counted.take();
            assert_eq!(records.len(), 20);
            for dispatch in records {
                assert_eq!(total(&dispatch, "SQ_WAVES"), waves(GRID, GROUP, 64) as f64);
            }
        }
        // The agent is free again.
        third.service.start().unwrap();
        third.service.stop(PATIENCE).unwrap();
    }

    fn eight_gpus_are_counted_at_once_and_each_has_its_own_waves(bed on ["gfx942-x8"]) {
        let gpus: Vec<u32> = (0..8).collect();
        assert_eq!(bed.application.gpus().len(), gpus.len());
        let counted: Vec<_> = gpus.iter().map(|gpu| count(bed, u64::from(gpu + 1), *gpu, &["SQ_WAVES"])).collect();
        counted.iter().for_each(|counted| counted.service.start().unwrap());
        std::thread::scope(|scope| {
            for &gpu in &gpus {
                let grid = [64 * (gpu + 1), 1, 1];
                scope.spawn(move || run::run(bed, gpu, vec![launch(bed, gpu, grid, [64, 1, 1]); 5]));
            }
        });
        for (&gpu, counted) in gpus.iter().zip(&counted) {
            counted.service.stop(PATIENCE).unwrap();
            let values: Vec<_> = counted.take().iter().map(|record| total(record, "SQ_WAVES")).collect();
            assert_eq!(values, [f64::from(gpu + 1); 5]);
            assert_eq!(bed.placement.dispatches(gpu).len(), 5);
        }
    }

    fn second_tracing_context_is_refused_by_name_until_the_first_stops(bed on ["gfx942"]) {
        let resources = bed.resources(0);
        let decide = || Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
        let first = trace(bed, &resources, What::of_context(1), decide()).unwrap();
        let second = trace(bed, &resources, What::of_context(2), decide()).unwrap();
        first.service.start().unwrap();
        let refusal = second.service.start().unwrap_err();
        assert!(matches!(refusal, Error::Conflict { .. } | Error::Busy { .. }), "{refusal:?}");
        for word in ["context 1", "context 2", "agent 0"] {
            assert!(refusal.to_string().contains(word), "{refusal}");
        }
        run(bed, 0, 1);
        first.service.stop(PATIENCE).unwrap();
        second.service.start().unwrap();
        run(bed, 0, 1);
        second.service.stop(PATIENCE).unwrap();
        assert_eq!(first.service.summary().delivered, 1);
        assert_eq!(second.service.summary().delivered, 1);
    }

    fn counting_and_tracing_share_a_dispatch(bed on ["gfx942", "gfx1201"]) {
        let resources = bed.resources(0);
        let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
        let traces = trace(bed, &resources, What::of_context(1), decide).unwrap();
        let counted = count(bed, 2, 0, &["SQ_WAVES", "GRBM_GUI_ACTIVE"]);
        counted.service.start().unwrap();
        traces.service.start().unwrap();
        run(bed, 0, 5);
        traces.service.stop(PATIENCE).unwrap();
        counted.service.stop(PATIENCE).unwrap();
        assert_eq!(traces.service.summary().delivered, 5);
        let records = counted.take();
        assert_eq!(records.len(), 5);
        let wave_size = u64::from(bed.agent(0).wave_size);
        for record in records {
            assert_eq!(total(&record, "SQ_WAVES"), waves(GRID, GROUP, wave_size) as f64);
        }
    }
}
