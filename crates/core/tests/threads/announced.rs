//! Threads of the kit, and one that the operating system refuses.

use std::ops::ControlFlow;

use wavescope_core::actor::{Actor, spawn};
use wavescope_core::sync::Places;
use wavescope_core::threads::create;

use crate::watch::Watch;

struct Idle;

impl Actor for Idle {
    type Message = ();
    const NAME: &'static str = "wavescope-with-a-long-name";

    fn handle(&mut self, (): ()) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs `refused` while the process gets no more memory, so no stack for a thread.
fn without_room<T>(refused: impl FnOnce() -> T) -> T {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the result is a local.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) }, 0);
    let none = libc::rlimit { rlim_cur: 0, ..limit };
    // SAFETY: what is mapped stays.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const none) }, 0);
    let outcome = refused();
    // SAFETY: as it was.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    outcome
}

#[test]
fn every_thread_is_announced_before_and_after_its_creation_even_one_that_is_refused() {
    let watch = Watch::begin(|_| false);
    // Later there are stacks of threads that ended.
    let refused = without_room(|| create("wavescope-never", || ()));
    assert!(refused.is_err(), "there was room");
    assert_eq!(watch.announced(), [("wavescope-never".to_owned(), 0)]);

    let watch = Watch::begin(|_| false);
    let actor = spawn(Idle, Places { requests: 1, notices: 0 }).unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let plain = create("wavescope-plain", move || ended.recv().is_err()).unwrap();
    assert_eq!(watch.created(), [Idle::NAME, "wavescope-plain"]);
    watch.wait_until_living(&watch.created());
    drop(end);
    assert!(plain.join().unwrap());
    actor.close_and_join().unwrap();
    watch.wait_until_living(&[]);
}
