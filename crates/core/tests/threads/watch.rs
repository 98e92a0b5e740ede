//! The process's threads as the operating system lists them, beside those that were announced. Tests of other crates use
//! it too, each in a program of its own: listeners are never taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wavescope_core::threads::{ThreadNotice, announce_threads};

/// Longer than a thread takes to name itself, or to end.
const SOON: Duration = Duration::from_secs(20);

/// What was announced.
#[derive(Debug)]
enum Notice {
    Before(String),
    After(String),
}

/// Listens to announcements from its making on.
pub(crate) struct Watch {
    /// Each with the threads that the process had then.
    told: Mutex<Vec<(Notice, BTreeSet<u32>)>>,
    /// Threads that were there at first.
    others: BTreeMap<u32, String>,
    /// Whether a thread of this name is none of ours.
    is_foreign: fn(&str) -> bool,
}

impl Watch {
    /// Threads with names for which `is_foreign` answers yes belong to what the test runs on.
    pub(crate) fn begin(is_foreign: fn(&str) -> bool) -> Arc<Self> {
        let watch = Arc::new(Self { told: Mutex::default(), others: tasks(), is_foreign });
        announce_threads(Arc::<Self>::clone(&watch));
        watch
    }

    /// Names of the threads that were announced so far, in order, each in one pair of notices, with how many threads came
    /// between the two. One that was there before may go meanwhile.
    pub(crate) fn announced(&self) -> Vec<(String, usize)> {
        let told = self.told.lock().unwrap();
        let pairs = told.chunks(2).map(|pair| match pair {
            [(Notice::Before(soon), before), (Notice::After(made), after)] if made == soon => {
                (made.clone(), after.difference(before).count())
            }
            _ => panic!("{told:?}"),
        });
        pairs.collect()
    }

    /// Names of the threads that were announced and created so far, in order.
    pub(crate) fn created(&self) -> Vec<String> {
        let announced = self.announced();
        assert!(announced.iter().all(|(_, came)| *came == 1), "{announced:?}");
        announced.into_iter().map(|(name, _)| name).collect()
    }

    /// Names of the threads that came since, by the operating system, sorted.
    fn living(&self) -> Vec<String> {
        let mut tasks = tasks();
        tasks.retain(|id, name| !(self.is_foreign)(name) && !self.others.contains_key(id));
        let mut names: Vec<_> = tasks.into_values().collect();
        names.sort();
        names
    }

    /// Waits until the threads that came since are `expected` and no others.
    pub(crate) fn wait_until_living(&self, expected: &[String]) {
        let mut expected: Vec<_> = expected.iter().map(|name| shown(name)).collect();
        expected.sort();
        let deadline = Instant::now() + SOON;
        // A thread names itself once it runs, and is listed until the kernel has taken it apart.
        while self.living() != expected {
            assert!(Instant::now() < deadline, "{:?} live, {expected:?} were announced", self.living());
            std::thread::yield_now();
        }
    }
}

impl ThreadNotice for Watch {
    fn before(&self, name: &str) {
        self.told.lock().unwrap().push((Notice::Before(name.to_owned()), tasks().into_keys().collect()));
    }

    fn after(&self, name: &str) {
        self.told.lock().unwrap().push((Notice::After(name.to_owned()), tasks().into_keys().collect()));
    }
}

/// Linux keeps 15 bytes of a name.
fn shown(name: &str) -> String {
    name.chars().take(15).collect()
}

/// Threads of the process with their names.
fn tasks() -> BTreeMap<u32, String> {
    let listed = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap());
    let named = listed.filter_map(|entry| {
        // It may have ended meanwhile.
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, name.trim_end().to_owned()))
    });
    named.collect()
}
