//! Children.

use std::process::Command;

use crate::bench::{Bench, Face};
use crate::on_both_faces;

on_both_faces! {
    /// Half of the children leave by `exit`, half by `_exit`; the parent is counted on, and its output is its own.
    fn children_leave_and_the_parent_goes_on(bench) {
        let ended = bench.run(bench.application("forks", None)).left_with(0).counted(19).went_down_after(19);
        let expected: String = (0..8).map(|child| format!("child {child}: left with 0\n")).collect();
        assert_eq!(ended.printed, expected);
        assert_eq!(bench.files(), 1, "a child wrote");
    }

    /// A child dies of SIGTERM as ever; one that touches the parent's queue harms nobody.
    fn children_are_inert(bench) {
        let ended = bench.run(bench.application("forks-more", None)).left_with(0).counted(11).went_down_after(11);
        assert_eq!(ended.printed, "asked: signal 15\nuser: 0\n");
    }
}

/// Preloaded into a shell that never touches a GPU, the tool brings no runtime, starts no thread, and children work.
#[test]
fn a_shell_with_the_tool_preloaded_knows_nothing_of_it() {
    let bench = Bench::new(Face::InProcess).unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do name=$(cat /proc/sys/kernel/ostype); echo $name; done
        grep -c 'libhsa-runtime\\|libamdhip' /proc/$$/maps
        grep -q libcount_waves /proc/$$/maps && echo preloaded
        ls /proc/$$/task | wc -l";
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).env("LD_PRELOAD", &bench.tool).env("WAVESCOPE_OUTPUT", bench.path("waves"));
    let ended = bench.run(command).left_with(0);
    assert_eq!(ended.printed, "Linux\n".repeat(10) + "0\npreloaded\n1\n");
    assert_eq!(bench.files(), 0);
}
