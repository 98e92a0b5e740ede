//! What one measured process does, handed to it in its environment.

use std::fmt;
use std::process::Command;

use wavescope_hsa_intercept::Technique;

/// How the application's queues are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queues {
    /// By the runtime, without a tool.
    Plain,
    /// The runtime's intercept queues with a C hook that passes everything on.
    PassOn,
    /// Plain ones; the application writes what interception would emit.
    Floor,
    Intercepted(Technique),
}

/// Who is interested in the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    Declined,
    Counted,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Dispatch,
    Handover,
    Start,
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) what: What,
    pub(crate) queues: Queues,
    pub(crate) who: Who,
    /// Queues that take turns, each with a thread that feeds it.
    pub(crate) threads: usize,
    /// Dispatches, in the sections that have many.
    pub(crate) dispatches: u64,
}

const WHAT: [(What, &str); 4] = [
    (What::Dispatch, "dispatch"),
    (What::Handover, "handover"),
    (What::Start, "start"),
    (What::Idle, "idle"),
];
const QUEUES: [(Queues, &str); 5] = [
    (Queues::Plain, "plain"),
    (Queues::PassOn, "pass-through C hook"),
    (Queues::Floor, "floor"),
    (Queues::Intercepted(Technique::Runtime), "runtime"),
    (Queues::Intercepted(Technique::Doorbell), "doorbell"),
];
const WHO: [(Who, &str); 3] = [(Who::Nobody, "idle"), (Who::Declined, "declined"), (Who::Counted, "counted")];

/// Holds the case in a measured process.
const VARIABLE: &str = "WAVESCOPE_BENCH_CASE";

fn name<T: PartialEq>(names: &[(T, &'static str)], of: &T) -> &'static str {
    names.iter().find(|(value, _)| value == of).map_or("?", |(_, name)| name)
}

fn value<T: Copy>(names: &[(T, &str)], of: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == of).map(|(value, _)| *value)
}

impl What {
    pub(crate) fn named(name: &str) -> Option<Self> {
        value(&WHAT, name)
    }
}

impl Case {
    /// The case of this process, if it is a measured one.
    pub(crate) fn from_environment() -> Option<Self> {
        let text = std::env::var(VARIABLE).ok()?;
        let mut words = text.split(';');
        let mut next = || words.next();
        Some(Self {
            what: value(&WHAT, next()?)?,
            queues: value(&QUEUES, next()?)?,
            who: value(&WHO, next()?)?,
            threads: next()?.parse().ok()?,
            dispatches: next()?.parse().ok()?,
        })
    }

    pub(crate) fn hand_to(self, command: &mut Command) {
        let Self { what, queues, who, threads, dispatches } = self;
        let (what, queues, who) = (name(&WHAT, &what), name(&QUEUES, &queues), name(&WHO, &who));
        command.env(VARIABLE, format!("{what};{queues};{who};{threads};{dispatches}"));
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match (self.queues, self.who) {
            (Queues::Plain | Queues::PassOn, _) => String::new(),
            _ => format!(", {}", name(&WHO, &self.who)),
        };
        let queues = if self.threads == 2 { ", two queues" } else { "" };
        f.pad(&format!("{}{who}{queues}", name(&QUEUES, &self.queues)))
    }
}
