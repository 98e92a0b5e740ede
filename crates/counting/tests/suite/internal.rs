//! Queues that the runtime makes for itself.

use hsa_sys::HSA_STATUS_SUCCESS;
use wavescope_counting::PoolSize;
use wavescope_workload::Launch;

use crate::packets::amd;
use crate::rig::*;
use crate::tracing::{Records, stop};

const GPUS: usize = 2;

/// Queues of the application that nobody sees, and queues of the runtime's own, by GPU.
fn others(rig: &Rig) -> Vec<(u32, u32)> {
    let list = rig.interceptor.other_queues();
    let agents: Vec<_> = list.iter().map(|queues| queues.agent).collect();
    assert_eq!(agents, (0..GPUS).map(|gpu| rig.agent(gpu).id).collect::<Vec<_>>());
    list.iter().map(|queues| (queues.unseen, queues.internal)).collect()
}

/// Has a GPU fill memory, for which ROCr takes a kernel and a queue of its own.
fn fill(rig: &Rig, gpu: usize) {
    let buffer = rig.application.buffer(rig.gpu(gpu), 4096).unwrap();
    let fill = amd(rig).hsa_amd_memory_fill_fn.unwrap();
    let address = std::ptr::with_exposed_provenance_mut(buffer.address() as usize);
    // SAFETY: memory of the application, 1,024 words of it.
    assert_eq!(unsafe { fill(address, 0x5a, 1024) }, HSA_STATUS_SUCCESS);
}

on_both_faces! {
    /// They are counted apart from the application's, never taken for unseen ones, and their kernels are nobody's: records of the
    /// application's kernels are not marked. ROCr makes one for each GPU when code is loaded there first; the runtime in this
    /// process has none.
    fn queues_of_the_runtime_are_counted_apart(rig on "gfx942-x2") {
        let made = u32::from(rig.is_rocr());
        assert_eq!(others(rig), [(0, made); GPUS], "the rig has loaded code on both");
        let (counting, counted) = rig.counting(2, &[0, 1], always(rig.config(0, &["SQ_WAVES"], PoolSize(4))));
        let (records, id) = Records::start(rig);
        counting.start().unwrap();
        let queues: Vec<_> = (0..GPUS).map(|gpu| rig.queue(gpu)).collect();
        for (gpu, queue) in queues.iter().enumerate() {
            fill(rig, gpu);
            let launch = Launch::new(rig.kernel(gpu, "empty"), [64 * 7, 1, 1], [64, 1, 1]);
            queue.submit(&batch([launch])).unwrap().wait(LIMIT).unwrap();
        }
        let now = others(rig);
        assert!(now.iter().all(|&(unseen, internal)| unseen == 0 && internal >= made), "{now:?}");
        counting.stop(LIMIT).unwrap();
        stop(rig, id);
        let completed = records.completed();
        assert_eq!(completed.len(), GPUS, "the application's kernels, and no others");
        assert!(completed.iter().all(|(kernel, _)| !kernel.blind), "{completed:?}");
        let counted = counted.try_recv().unwrap();
        assert_eq!((total(&counted, "SQ_WAVES"), counted.company.unseen), (7.0, false));
        drop(queues);
        assert_eq!(others(rig), now, "the application's come and go elsewhere");
    }
}
