//! Children.

use std::process::Command;

use crate::bench::{Bench, Technique};
use crate::on_both_faces;

on_both_faces! {
    /// Half of the children leave by `exit`, half by `_exit`; the parent is counted on, and its output is its own.
    fn children_leave_and_the_parent_goes_on(bench) {
        let ended = bench.run(bench.application("forks", None)).left_with(0).counted(19).went_down_after(19);
        let expected: String = (0..8).map(|child| format!("child {child}: left with 0\n")).collect();
        assert_eq!(ended.printed, expected);
        assert_eq!(bench.files(), 1, "a child wrote");
    }

    /// A child dies of SIGTERM as ever; one that touches the parent's queue harms nobody but, with the runtime's own queues,
    /// itself: see [`user_of_the_runtimes_queue`].
    fn children_are_inert(bench) {
        let ended = bench.run(bench.application("forks-more", None)).left_with(0).counted(11).went_down_after(11);
        let user = match bench.technique {
            Technique::Doorbell => "user: 0".to_owned(),
            Technique::Runtime => user_of_the_runtimes_queue(bench),
        };
        assert_eq!(ended.printed, format!("asked: signal 15\n{user}\n"));
    }
}

/// A child has none of the memory that the runtime maps for GPUs, so it ends by SIGSEGV when it rings, also with an
/// intercept queue whose hook does nothing, and with a queue that nobody intercepts.
fn user_of_the_runtimes_queue(bench: &Bench) -> String {
    let user = |command: Command| {
        let printed = bench.run(command).left_with(0).printed;
        printed.lines().find(|line| line.starts_with("user: ")).unwrap().to_owned()
    };
    let mut command = bench.application("forks-more", None);
    command.env("HSA_TOOLS_LIB", bench.pass_through_tool());
    let mut bare = bench.application("forks-more", None);
    bare.env_remove("HSA_TOOLS_LIB");
    let ended = format!("user: -{}", libc::SIGSEGV);
    assert_eq!([user(command), user(bare)], [ended.as_str(), &ended], "passed on, and without any tool");
    ended
}

/// Preloaded into a shell that never touches a GPU, the tool brings no runtime, starts no thread, and children work.
#[test]
fn a_shell_with_the_tool_preloaded_knows_nothing_of_it() {
    let bench = Bench::in_process(Technique::AUTO);
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
