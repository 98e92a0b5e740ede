//! Libraries that come and go.

use crate::bench::{Bench, Technique};
use crate::on_both_faces;

/// The constructor of a library is the first to use the runtime, so the tool is loaded under the loader's lock. Not on the
/// real runtime: there loading code waits for the GPU, and the threads of one in software cannot begin either.
#[test]
fn the_first_use_may_be_in_a_constructor() {
    for technique in [Technique::Runtime, Technique::Doorbell] {
        the_first_use_is_in_a_constructor(&Bench::in_process(technique));
    }
}

fn the_first_use_is_in_a_constructor(bench: &Bench) {
    let works = bench.library("works");
    let mut command = bench.application("loads-first", Some(&works));
    command.env("LIFECYCLE_CODE", &bench.code);
    let ended = bench.run(command).left_with(0).counted(10).went_down_after(10);
    assert_eq!(ended.printed, "at work\nthe constructor returned\nfinished\n");
}

on_both_faces! {
    /// Closing the tool does not unload it.
    fn the_tool_cannot_be_closed(bench) {
        let ended = bench.run(bench.application("closes", Some(&bench.tool))).left_with(0);
        let ended = ended.counted(20).went_down_after(20);
        assert_eq!(ended.printed, "the tool is there\n");
    }

    /// Sixteen threads load libraries and register code objects while kernels are counted.
    fn threads_may_load_code_at_once(bench) {
        let mute = bench.library("exits_never");
        bench.run(bench.application("registers", Some(&mute))).left_with(0).counted(20).went_down_after(20);
    }

    /// A copy of the library in another file has statics of its own: it sees that another was faster, and counts nothing.
    fn the_second_copy_of_a_tool_keeps_out(bench) {
        let copy = bench.path("copy.so");
        std::fs::copy(&bench.tool, &copy).unwrap();
        let mut command = bench.application("ends", None);
        command.env("HSA_TOOLS_LIB", format!("{} {}", bench.tool.display(), copy.display()));
        let ended = bench.run(command).left_with(0).counted(10).went_down_after(10);
        assert!(ended.printed.starts_with("count_waves: "), "{}", ended.printed);
    }
}
