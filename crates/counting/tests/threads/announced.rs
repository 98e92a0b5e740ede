//! Each thread is announced, and the operating system lists no others.

use std::process::Command;

use wavescope_counting::PoolSize;
use wavescope_on_rocr::{Gpus, Place, Profile, rerun_with};
use wavescope_workload::Launch;

use crate::rig::*;
use crate::watch::Watch;

const COUNT: &str = "wavescope-count";
const REAP: &str = "wavescope-reap";
const FRONT: &str = "wavescope-front";

/// Interception, a service, a counted kernel; then all of it ends. The queue's front has a thread, too.
fn check(watch: &Watch, technique: Technique, rig: impl FnOnce() -> Rig) {
    let rig = rig();
    assert!(watch.created().is_empty(), "interception alone has no thread");
    let config = rig.config(0, &["SQ_WAVES"], PoolSize::default());
    let (service, records) = rig.counting(1, &[0], always(config));
    assert_eq!(watch.created(), [COUNT], "the service's");
    service.start().unwrap();
    let queue = rig.queue(0);
    let launch = Launch::new(rig.kernel(0, "empty"), [64, 1, 1], [64, 1, 1]);
    queue.submit(&batch([launch])).unwrap().wait(LIMIT).unwrap();
    let mut expected = vec![COUNT, REAP];
    expected.extend((technique == Technique::Doorbell).then_some(FRONT));
    assert_eq!(watch.created(), expected, "{technique:?}");
    watch.wait_until_living(&watch.created());
    service.stop(LIMIT).unwrap();
    assert_eq!(total(&records.try_recv().unwrap(), "SQ_WAVES"), 1.0);
    drop((service, queue, rig));
    watch.wait_until_living(&[]);
}

const NAME: &str = "announced::every_thread_is_announced_and_there_are_no_others";

/// The real runtime gets a process for each technique; its threads bear any name but ours.
fn check_on_rocr(technique: &str) -> Place {
    let gpus: Gpus = "gfx942".parse().unwrap();
    let choose = |command: &mut Command| {
        command.env(Technique::VARIABLE, technique);
    };
    let place = rerun_with(NAME, Profile::Libs, &gpus, choose).unwrap();
    if place == Place::OnRuntime {
        let technique = Technique::from_environment();
        let watch = Watch::begin(|name| !name.starts_with("wavescope-"));
        check(&watch, technique, || Ground::on_rocr(&gpus).install(technique));
    }
    place
}

fn is_of_the_software_gpu(name: &str) -> bool {
    name.starts_with("gpu-queue-") || name.starts_with("hsa-")
}

// Field report G15 on whole runtimes.
#[test]
fn every_thread_is_announced_and_there_are_no_others() {
    for technique in ["runtime", "doorbell"] {
        if check_on_rocr(technique) == Place::OnRuntime {
            return;
        }
        let technique = technique.parse().unwrap();
        let watch = Watch::begin(is_of_the_software_gpu);
        check(&watch, technique, || Rig::in_process("gfx942", technique));
    }
}
