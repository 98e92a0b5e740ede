//! On the real runtime, too, the submitting thread makes no system call for a counted dispatch: there a doorbell is a
//! store to memory.

use wavescope_counting::PoolSize;

use crate::packets::*;
use crate::rig::*;
use crate::strace::system_calls;

const BATCH: u64 = 64;
const PACKETS: u32 = 4096;

fn makes_none(rig: &Rig) {
    let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(256))));
    counting.start().unwrap();
    let queue = rig.application.queue(rig.gpu(0), PACKETS).unwrap();
    let done = rig.application.signal(0).unwrap();
    let kernel = packet(rig, 1, done.handle().handle);
    let rig = Shared(rig);
    let submit = || {
        let first = reserve(rig.get(), &queue, BATCH);
        (first..first + BATCH).for_each(|index| write(&queue, index, &kernel));
        ring(rig.get(), &queue, first + BATCH - 1);
    };
    let warm_up = || {
        for _ in 0..20 {
            done.store(BATCH.cast_signed()).unwrap();
            submit();
            done.wait_below(1, LIMIT).unwrap();
        }
        // Whatever is still being read would make the pool grow.
        counting.flush(LIMIT).unwrap();
        done.store(BATCH.cast_signed()).unwrap();
    };
    let calls = system_calls(warm_up, submit);
    done.wait_below(1, LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();
    assert_eq!(calls.unwrap_or_default(), Vec::<String>::new());
    assert_eq!(std::iter::from_fn(|| records.try_recv()).count() as u64, 21 * BATCH);
}

#[test]
fn a_counted_dispatch_makes_no_system_call_on_rocr() {
    let test = "a_counted_dispatch_makes_no_system_call_on_rocr";
    Rig::on_rocr(module_path!(), test, "gfx942", Technique::Doorbell, makes_none);
}
