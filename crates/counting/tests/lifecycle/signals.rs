//! Signals of the operating system.

use crate::bench::{Bench, Technique};
use crate::on_both_faces;

on_both_faces! {
    /// Neither the tool nor anything below it handles a signal that the bare application does not.
    fn the_tool_installs_no_handlers(bench) {
        let with = bench.run(bench.application("handles", None)).left_with(0).counted(10);
        let mut bare = bench.application("handles", None);
        bare.env_remove("HSA_TOOLS_LIB");
        let without = bench.run(bare).left_with(0);
        assert_eq!(with.printed, without.printed);
        assert!(without.records.dispatches.is_empty());
    }

    fn handlers_of_the_application_run(bench) {
        let ended = bench.run(bench.application("catches", None)).left_with(0).counted(30).went_down_after(30);
        assert_eq!(ended.printed, "caught 1\n".repeat(3));
    }
}
