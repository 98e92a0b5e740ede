//! The shape of a dispatch: its work-groups, also those at the edges of the grid that are not full.

/// Sizes in work-items, per dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) grid: [u32; 3],
    pub(crate) workgroup: [u32; 3],
}

/// One work-group of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workgroup {
    /// Number in the dispatch, x fastest.
    pub(crate) number: u64,
    /// Work-items in it: fewer than full at the edges of the grid.
    pub(crate) items: u32,
}

impl Geometry {
    /// The largest work-group that hardware launches.
    const MAX_WORKGROUP: u64 = 1024;

    /// Whether hardware could launch it.
    pub(crate) fn is_valid(&self) -> bool {
        let items = self.workgroup.iter().map(|&size| u64::from(size)).product::<u64>();
        let grid = self.grid.iter().all(|&size| size > 0);
        grid && (1..=Self::MAX_WORKGROUP).contains(&items)
    }

    fn counts(&self) -> [u64; 3] {
        std::array::from_fn(|d| u64::from(self.grid[d].div_ceil(self.workgroup[d])))
    }

    /// Work-groups of the dispatch. Only for a valid geometry.
    pub(crate) fn workgroups(&self) -> impl Iterator<Item = Workgroup> + use<> {
        let [nx, ny, nz] = self.counts();
        let this = *self;
        let planes = (0..nz).flat_map(move |z| (0..ny).map(move |y| (y, z)));
        planes.flat_map(move |(y, z)| {
            let rest = this.edge(1, y) * this.edge(2, z);
            let first = (z * ny + y) * nx;
            (0..nx).map(move |x| Workgroup { number: first + x, items: this.edge(0, x) * rest })
        })
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn workgroup_count(&self) -> u64 {
        self.counts().iter().product()
    }

    /// Extent of the work-groups at `index` of a dimension. The work-group size bounds it: it fits 32 bits, and
    /// so does the product over the dimensions.
    fn edge(&self, dimension: usize, index: u64) -> u32 {
        let size = self.workgroup[dimension];
        let left = u64::from(self.grid[dimension]) - index * u64::from(size);
        u32::try_from(left).unwrap_or(u32::MAX).min(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(grid: [u32; 3], workgroup: [u32; 3]) -> Vec<u32> {
        Geometry { grid, workgroup }.workgroups().map(|group| group.items).collect()
    }

    #[test]
    fn edges_are_cut_in_every_dimension() {
        assert_eq!(items([130, 1, 1], [64, 1, 1]), [64, 64, 2]);
        assert_eq!(items([3, 3, 1], [2, 2, 1]), [4, 2, 2, 1]);
        assert_eq!(items([1, 1, 5], [1, 1, 4]), [4, 1]);
    }

    #[test]
    fn all_work_items_are_launched_once() {
        let geometry = Geometry { grid: [77, 13, 5], workgroup: [32, 4, 2] };
        let total: u64 = geometry.workgroups().map(|group| u64::from(group.items)).sum();
        assert_eq!(total, 77 * 13 * 5);
        let numbers: Vec<u64> = geometry.workgroups().map(|group| group.number).collect();
        assert_eq!(numbers, (0..geometry.workgroup_count()).collect::<Vec<_>>());
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let valid = |grid, workgroup| Geometry { grid, workgroup }.is_valid();
        assert!(valid([u32::MAX, 1, 1], [1024, 1, 1]));
        assert!(!valid([0, 1, 1], [64, 1, 1]));
        assert!(!valid([1, 1, 1], [0, 1, 1]));
        assert!(!valid([1, 1, 1], [1025, 1, 1]));
        assert!(!valid([1, 1, 1], [0xFFFF, 0xFFFF, 0xFFFF]));
    }
}
