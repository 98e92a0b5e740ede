//! How many waves a launch has, from its shape alone.

/// Waves of a launch: each work-group, the partial ones at the edges too, rounds up to whole waves.
pub fn waves(grid: [u32; 3], workgroup: [u16; 3], wave_size: u64) -> u64 {
    let sizes = |axis: usize| {
        let (grid, group) = (u64::from(grid[axis]), u64::from(workgroup[axis]));
        (0..grid.div_ceil(group)).map(move |index| group.min(grid - index * group))
    };
    let mut waves = 0;
    for z in sizes(2) {
        for y in sizes(1) {
            for x in sizes(0) {
                waves += (x * y * z).div_ceil(wave_size);
            }
        }
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;

    // Counted by hand.
    #[test]
    fn partial_groups_round_up_on_their_own() {
        assert_eq!(waves([64, 1, 1], [64, 1, 1], 64), 1);
        assert_eq!(waves([65, 1, 1], [64, 1, 1], 64), 2);
        // Groups of 96 work-items are two waves each, the last of 8 is one.
        assert_eq!(waves([200, 1, 1], [96, 1, 1], 64), 5);
        // 3 x 2 groups of 16 x 16 in the plane; those at the right have 8 columns: 4 + 4 + 2 waves a row.
        assert_eq!(waves([40, 32, 1], [16, 16, 1], 64), 20);
    }
}
