//! Counter values against the launch geometry and the placement log.

use std::collections::BTreeMap;

use wavescope_tests::{PATIENCE, TARGETS, count, on_both_faces, total, waves};

use crate::run::{launch, run};

/// Grid and work-group sizes, among them partial work-groups and 3-D grids.
const SHAPES: [([u32; 3], [u16; 3]); 8] = [
    ([64, 1, 1], [64, 1, 1]),
    ([4096, 1, 1], [256, 1, 1]),
    ([1000, 1, 1], [256, 1, 1]),
    ([65, 1, 1], [32, 1, 1]),
    ([100, 7, 1], [16, 16, 1]),
    ([33, 9, 5], [8, 4, 2]),
    ([40, 40, 40], [10, 10, 10]),
    ([1, 1, 1], [1, 1, 1]),
];

on_both_faces! {
    fn sq_waves_equal_the_launch_geometry(bed on TARGETS) {
        let counted = count(bed, 1, 0, &["SQ_WAVES", "GRBM_COUNT", "GRBM_GUI_ACTIVE"]);
        counted.service.start().unwrap();
        run(bed, 0, SHAPES.map(|(grid, workgroup)| launch(bed, 0, grid, workgroup)));
        counted.service.stop(PATIENCE).unwrap();
        let records = counted.take();
        assert_eq!(records.len(), SHAPES.len());
        let wave_size = u64::from(bed.agent(0).wave_size);
        for (record, (grid, workgroup)) in records.iter().zip(SHAPES) {
            assert_eq!((record.dispatch.grid, record.dispatch.workgroup), (grid, workgroup));
            let expected = waves(grid, workgroup, wave_size) as f64;
            assert_eq!(total(record, "SQ_WAVES"), expected, "{grid:?} in {workgroup:?}");
            let (all, busy) = (total(record, "GRBM_COUNT"), total(record, "GRBM_GUI_ACTIVE"));
            assert!(0.0 < busy && busy <= all, "busy for {busy} of {all} cycles");
        }
    }

    // On gfx11 and gfx12 the packet library numbers the values of a sequencer counter otherwise than it reads them.
    fn waves_are_counted_on_the_engines_where_they_ran(bed on ["gfx942", "gfx90a", "gfx950"]) {
        let counted = count(bed, 1, 0, &["SQ_WAVES"]);
        counted.service.start().unwrap();
        // Fewer groups than the largest chip has engines, so that some engines stay empty.
        run(bed, 0, [3, 20, 1000].map(|groups| launch(bed, 0, [groups * 256, 1, 1], [256, 1, 1])));
        counted.service.stop(PATIENCE).unwrap();
        let records = counted.take();
        let dispatches = bed.placement.dispatches(0);
        assert_eq!((records.len(), dispatches.len()), (3, 3));
        for (record, dispatch) in records.iter().zip(dispatches) {
            let mut counted = BTreeMap::new();
            for value in &record.records {
                let place = (u32::from(value.position.xcc), u32::from(value.position.shader_engine));
                *counted.entry(place).or_default() += value.value as u64;
            }
            let mut placed: BTreeMap<_, u64> = counted.keys().map(|place| (*place, 0)).collect();
            for wave in bed.placement.waves(0, dispatch.dispatch) {
                *placed.entry((wave.xcc, wave.se)).or_default() += 1;
            }
            assert_eq!(counted, placed, "{:?}", dispatch.grid);
        }
    }
}
