//! The enqueue path makes no system call once it is warm.

#[cfg(test)]
#[path = "../../benches/enqueue/heap.rs"]
mod heap;
#[cfg(test)]
#[path = "../../benches/enqueue/rig.rs"]
mod rig;
#[cfg(test)]
mod strace;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::heap::Heap;
    use crate::rig::{Case, Rig};
    use crate::strace::system_calls;

    /// Batches that are submitted while nothing of them retires.
    const BATCHES: usize = 3;

    fn makes_none(case: Case) {
        let rig = Mutex::new(Rig::new(case, Arc::new(Heap::default())));
        let submit = || (0..BATCHES).for_each(|_| rig.lock().unwrap().submit());
        let warm_up = || {
            for _ in 0..20 {
                submit();
                rig.lock().unwrap().retire();
            }
        };
        let calls = system_calls(warm_up, submit);
        rig.lock().unwrap().retire();
        assert_eq!(calls.unwrap_or_default(), Vec::<String>::new());
    }

    #[test]
    fn nobody_subscribed() {
        makes_none(Case::NoSubscriber);
    }

    #[test]
    fn declined() {
        makes_none(Case::Declined { serialized: true });
    }

    #[test]
    fn counted() {
        makes_none(Case::Counted);
    }

    #[test]
    fn the_tracer_of_this_test_sees_calls() {
        let Some(calls) = system_calls(|| (), std::thread::yield_now) else { return };
        assert_eq!(calls.len(), 1);
        assert!(calls[0].starts_with("sched_yield"), "{calls:?}");
    }
}
