//! The application's part.

use wavescope_tests::{Bed, PATIENCE};
use wavescope_workload::{Batch, Launch};

/// A launch of the kernel that does nothing.
pub(crate) fn launch(bed: &Bed, gpu: u32, grid: [u32; 3], workgroup: [u16; 3]) -> Launch {
    let kernel = bed.modules[gpu as usize].kernel("empty").unwrap();
    Launch::new(kernel, grid, workgroup)
}

/// Runs launches in one batch on a queue of their own and waits for them.
pub(crate) fn run(bed: &Bed, gpu: u32, launches: impl IntoIterator<Item = Launch>) {
    let queue = bed.application.queue(bed.gpu(gpu), 64).unwrap();
    queue.submit(&batch(launches)).unwrap().wait(PATIENCE).unwrap();
}

pub(crate) fn batch(launches: impl IntoIterator<Item = Launch>) -> Batch {
    let mut batch = Batch::new();
    for launch in launches {
        batch.launch(launch);
    }
    batch
}
