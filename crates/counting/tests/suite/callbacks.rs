//! Dispatch callbacks that do not return.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use wavescope_core::InterceptionError;
use wavescope_counting::{Choice, Error, PoolSize};
use wavescope_on_rocr::{Gpus, Place, Profile, rerun};
use wavescope_workload::Launch;

use crate::packets::Shared;
use crate::rig::*;

const MACHINE: &str = "gfx942";
const ALLOWED: Duration = Duration::from_millis(100);

fn options(technique: Technique) -> Options {
    Options { technique: Some(technique), callback_timeout: ALLOWED, ..Options::default() }
}

fn launch(rig: &Rig, waves: u32) -> Launch {
    Launch::new(rig.kernel(0, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

/// A stop meets the callback for the first kernel; a kernel of another queue is asked about no more.
fn check(rig: &Rig) {
    let (entered, inside) = mpsc::channel();
    let (leave, left) = mpsc::channel();
    let left = Mutex::new(left);
    let config = rig.config(0, &["SQ_WAVES"], PoolSize::default());
    let (counting, records) = rig.counting(1, &[0], move |dispatch| {
        entered.send(dispatch.queue).unwrap();
        left.lock().unwrap().recv_timeout(LIMIT).unwrap();
        Choice { config: Some(config.clone()), user_data: 0 }
    });
    counting.start().unwrap();
    let (queue, other) = (rig.queue(0), rig.queue(0));
    std::thread::scope(|scope| {
        let (rig, queue) = (Shared(rig), &queue);
        let submitter = scope.spawn(move || {
            queue.submit(&batch([launch(rig.get(), 3)])).unwrap().wait(LIMIT).unwrap();
        });
        let busy = inside.recv_timeout(LIMIT).unwrap();
        let error = counting.stop(LIMIT).unwrap_err();
        let Error::Interception(InterceptionError::CallbackBusy { agent, queue, waited, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!((agent, queue), (rig.get().agent(0).id, busy));
        assert!((ALLOWED..LIMIT).contains(&waited), "{waited:?}");
        other.submit(&batch([launch(rig.get(), 5)])).unwrap().wait(LIMIT).unwrap();
        leave.send(()).unwrap();
        submitter.join().unwrap();
    });
    counting.stop(LIMIT).unwrap();
    let counted = records.try_recv().unwrap();
    assert_eq!(total(&counted, "SQ_WAVES"), 3.0, "what the callback chose was counted");
    let summary = counting.summary();
    assert_eq!((summary.seen, summary.counted, summary.lost), (1, 1, 0));
}

fn check_on_rocr(test: &str, technique: Technique) {
    let gpus: Gpus = MACHINE.parse().unwrap();
    if rerun(test, Profile::Libs, &gpus).unwrap() == Place::OnRuntime {
        check(&Ground::on_rocr(&gpus).install_with(options(technique)));
    }
}

mod a_stop_names_the_callback_that_does_not_return {
    use super::*;

    #[test]
    fn in_process_runtime() {
        check(&Ground::in_process(preset(MACHINE)).install_with(options(Technique::Runtime)));
    }

    #[test]
    fn in_process_doorbell() {
        check(&Ground::in_process(preset(MACHINE)).install_with(options(Technique::Doorbell)));
    }

    #[test]
    fn on_rocr_runtime() {
        let test = "callbacks::a_stop_names_the_callback_that_does_not_return::on_rocr_runtime";
        check_on_rocr(test, Technique::Runtime);
    }

    #[test]
    fn on_rocr_doorbell() {
        let test = "callbacks::a_stop_names_the_callback_that_does_not_return::on_rocr_doorbell";
        check_on_rocr(test, Technique::Doorbell);
    }
}
