//! Each thread is announced, and the operating system lists no others.

use std::process::Command;

use wavescope_core::{GfxTarget, Topology};
use wavescope_hsa_intercept::Technique;
use wavescope_on_rocr::{Gpus, Place, Profile, rerun_with, runtime_table};
use wavescope_software_gpu::face::{self, SoftwareRuntime};

use crate::watch::Watch;
use crate::world::{LIMIT, World};

const COUNT: &str = "wavescope-count";
const REAP: &str = "wavescope-reap";
const FRONT: &str = "wavescope-front";

/// A service, a counted kernel; then all of it ends. The queue's front has a thread, too.
fn check(watch: &Watch, technique: Technique, world: World) {
    assert!(watch.created().is_empty(), "interception alone has no thread");
    let (service, records) = world.counting();
    assert_eq!(watch.created(), [COUNT], "the service's");
    service.start().unwrap();
    let queue = world.run();
    let mut expected = vec![COUNT, REAP];
    expected.extend((technique == Technique::Doorbell).then_some(FRONT));
    assert_eq!(watch.created(), expected, "{technique:?}");
    watch.wait_until_living(&watch.created());
    service.stop(LIMIT).unwrap();
    let counted = records.try_recv().unwrap();
    assert_eq!(counted.records.iter().map(|record| record.value).sum::<f64>(), 1.0);
    drop((service, queue, world));
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
        let topology = Topology::read(&gpus.folder().unwrap()).unwrap();
        check(&watch, technique, World::new(runtime_table().unwrap().cast_mut(), topology, technique));
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
        let runtime = SoftwareRuntime::start(face::Options::preset(GfxTarget::GFX942, 1)).unwrap();
        check(&watch, technique, World::new(runtime.table(), runtime.topology().clone(), technique));
    }
}
