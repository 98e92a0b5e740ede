//! The enqueue path allocates nothing once it is warm.

#[cfg(test)]
#[path = "../../benches/enqueue/heap.rs"]
mod heap;
#[cfg(test)]
#[path = "../../benches/enqueue/rig.rs"]
mod rig;

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;
    use std::sync::Arc;

    use crate::heap::Heap;
    use crate::rig::{Case, Rig};

    /// The system's allocator, counting per thread: the reaper and the actor are others.
    struct Counting;

    thread_local! {
        static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    }

    // SAFETY: every call is the system allocator's, with its own contract; the counter is a plain thread-local.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
            // SAFETY: by the caller.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: by the caller.
            unsafe { System.dealloc(pointer, layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
            // SAFETY: by the caller.
            unsafe { System.realloc(pointer, layout, size) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    fn allocations_of(case: Case) -> u64 {
        let mut rig = Rig::new(case, Arc::new(Heap::default()));
        for _ in 0..50 {
            rig.submit();
            rig.retire();
        }
        let mut count = 0;
        for _ in 0..50 {
            let before = ALLOCATIONS.get();
            rig.submit();
            count += ALLOCATIONS.get() - before;
            rig.retire();
        }
        count
    }

    #[test]
    fn nobody_subscribed() {
        assert_eq!(allocations_of(Case::NoSubscriber), 0);
    }

    #[test]
    fn declined() {
        assert_eq!(allocations_of(Case::Declined { serialized: false }), 0);
        assert_eq!(allocations_of(Case::Declined { serialized: true }), 0);
    }

    #[test]
    fn counted() {
        assert_eq!(allocations_of(Case::Counted), 0);
    }

    #[test]
    fn the_allocator_of_this_test_counts() {
        let before = ALLOCATIONS.get();
        drop(std::hint::black_box(Box::new(1)));
        assert_eq!(ALLOCATIONS.get(), before + 1);
    }
}
