//! Every recorded command buffer runs.

use std::path::Path;

use crate::rig::Rig;
use crate::rig::dispatch;
use crate::rig::stream::{Recorded, array, config, load, number, shared_sets};

/// What an output slot holds before anything is written.
const UNWRITTEN: u32 = 0xA5A5_A5A5;

/// Runs a counter set and checks that every dword was written whose address the read buffer holds. (Not the slots that
/// the library reports: it counts those on the I/O die once per XCC, but reads them once.)
fn run_counters(recorded: &Recorded) {
    let rig = Rig::new(recorded.config());
    let loaded = recorded.load(&rig);
    let output = loaded.bases[0];
    (0..loaded.sizes[0] / 4).for_each(|dword| rig.arena().store_u32(output + 4 * dword, UNWRITTEN));
    run(
        &rig,
        &recorded.name,
        &[loaded.packet("start", 0)],
        &[loaded.packet("read", 0), loaded.packet("stop", 0)],
    );
    let relocations = array(&recorded.json["ib"]["read"]["relocs"]);
    for reloc in relocations.iter().filter(|reloc| number(&reloc[1]) == 0 && reloc[3] == "lo") {
        let offset = number(&reloc[2]);
        assert_ne!(rig.arena().load_u32(output + offset), UNWRITTEN, "{}: byte {offset}", recorded.name);
    }
}

/// Runs a trace and checks that each engine's record was written, without an error.
fn run_trace(recorded: &Recorded) {
    let rig = Rig::new(recorded.config());
    let loaded = recorded.load(&rig);
    run(&rig, &recorded.name, &[loaded.packet("start", 0)], &[loaded.packet("stop", 0)]);
    for engine in array(&recorded.json["enabled_se"]) {
        let status = rig.arena().load_u32(loaded.bases[0] + 32 * number(engine));
        assert_eq!(status & (1 << 24 | 1 << 25 | 1 << 28), 0, "{}: engine {engine}", recorded.name);
    }
}

fn run(rig: &Rig, name: &str, before: &[wavescope_core::AqlPacket], after: &[wavescope_core::AqlPacket]) {
    let signal = rig.signal(1);
    let mut queue = rig.queue(16);
    queue.submit(before);
    queue.submit(&[dispatch(rig.kernel(3), [3000, 1, 1], [256, 1, 1], 0)]);
    let (last, rest) = after.split_last().unwrap();
    let mut last = *last;
    last.set_completion_signal(signal);
    queue.submit(rest);
    queue.submit(&[last]);
    let ended = crate::rig::within_time(std::time::Duration::from_secs(20), || {
        rig.value(signal) == 0 || !rig.host.errors.lock().unwrap().is_empty()
    });
    let errors = rig.host.errors.lock().unwrap();
    assert!(ended && errors.is_empty(), "{name}: {errors:?}");
}

/// False if there was nothing to run in the file.
fn run_file(path: &Path) -> bool {
    let recorded = Recorded::read(path);
    let name = path.file_name().unwrap().to_str().unwrap();
    match name.split('-').next().unwrap() {
        "pmc" if recorded.has_commands() => run_counters(&recorded),
        "att" if recorded.has_commands() => run_trace(&recorded),
        "codeobj.json" => run_markers(path, &recorded),
        _ => return false,
    }
    true
}

fn run_markers(path: &Path, recorded: &Recorded) {
    let info = Recorded::read(&path.with_file_name("info.json"));
    let mut agent = info.json["agent"].clone();
    agent["ip_discovery"] = info.json["ip_discovery"].clone();
    let rig = Rig::new(config(&agent));
    for marker in array(&recorded.json["markers"]) {
        let buffers = serde_json::json!({ "marker": marker["ib"] });
        let loaded = load(&rig, &marker["allocs"], &buffers);
        run(&rig, &recorded.name, &[], &[loaded.packet("marker", 0)]);
    }
}

#[test]
fn the_repositorys_sets_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aqlprofile");
    let mut count = 0;
    for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            count += usize::from(!path.ends_with("codeobj.json") && run_file(&path));
        }
    }
    assert_eq!(count, 13);
}

#[test]
fn every_recorded_set_runs() {
    let files = match shared_sets() {
        Ok(files) => files,
        Err(reason) => {
            println!("NOT RUN: {reason}");
            return;
        }
    };
    let count = files.iter().filter(|path| run_file(path)).count();
    println!("{count} of {} files hold command buffers, and all of them run", files.len());
    assert!(count > 1000);
}
