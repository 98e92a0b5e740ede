//! Events: what a GPU raises and a thread of the application waits for.
//!
//! A static table and one futex word, on which each waiter sleeps for the bits of its events: a GPU that completes
//! packets without pause must not wake every thread that waits for something else. The rules are those of the kernel driver (`amdkfd/kfd_events.c`): an event has
//! an *age* that starts at 1 and grows with each set; a wait that names an age is satisfied by any other age, a wait
//! that names age 0 only by the signaled flag; an auto-reset event loses its flag to the wait that it satisfies.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::abi::kfd::{EventData, WaitEvents};
use crate::errno::{Answer, Errno};
use crate::futex::{self, Lock};

/// Events of a process: the kernel driver's `KFD_SIGNAL_EVENT_LIMIT`.
pub(crate) const LIMIT: usize = 4096;

/// `KFD_IOC_EVENT_SIGNAL`.
pub(crate) const KIND_SIGNAL: u32 = 0;
/// `KFD_IOC_EVENT_HW_EXCEPTION`.
pub(crate) const KIND_HW_EXCEPTION: u32 = 3;
/// `KFD_IOC_EVENT_MEMORY`.
pub(crate) const KIND_MEMORY: u32 = 8;

/// Results of a wait: `KFD_IOC_WAIT_RESULT_*`.
const RESULT_COMPLETE: u32 = 0;
const RESULT_TIMEOUT: u32 = 1;
const RESULT_FAIL: u32 = 2;

/// Timeout that never ends.
const FOR_EVER: u32 = u32::MAX;

struct Event {
    used: AtomicBool,
    kind: AtomicU32,
    auto_reset: AtomicBool,
    signaled: AtomicBool,
    age: AtomicU64,
    /// What happened, for an event of an exception: the union of `kfd_event_data`.
    payload: [AtomicU64; 4],
}

static TABLE: [Event; LIMIT] = [const {
    Event {
        used: AtomicBool::new(false),
        kind: AtomicU32::new(0),
        auto_reset: AtomicBool::new(false),
        signaled: AtomicBool::new(false),
        age: AtomicU64::new(0),
        payload: [const { AtomicU64::new(0) }; 4],
    }
}; LIMIT];

/// Guards creation and the consumption of auto-reset flags by a wait for all.
static LOCK: Lock = Lock::new();
/// Changes with every set and destroy that somebody waits for; waiters sleep on it.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Threads inside a wait, by the bits of the events that they wait for: nobody is woken where nobody sleeps.
static WAITERS: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];

/// The futex's bit of an event, shared with every 32nd other: whose sleep ends for nothing looks again.
const fn bit(id: u32) -> u32 {
    id % 32
}

fn event(id: u32) -> Result<&'static Event, Errno> {
    let event = TABLE.get(id as usize).filter(|event| event.used.load(Ordering::Acquire));
    event.ok_or(Errno(libc::EINVAL))
}

/// Takes a free event. Ids start at 1: 0 in a signal means "no event".
///
/// # Errors
/// `ENOSPC` when all are taken.
pub(crate) fn create(kind: u32, auto_reset: bool) -> Result<u32, Errno> {
    let _guard = LOCK.lock();
    let free = |(_, event): &(usize, &Event)| !event.used.load(Ordering::Relaxed);
    let (id, event) = TABLE.iter().enumerate().skip(1).find(free).ok_or(Errno(libc::ENOSPC))?;
    event.kind.store(kind, Ordering::Relaxed);
    event.auto_reset.store(auto_reset, Ordering::Relaxed);
    event.signaled.store(false, Ordering::Relaxed);
    event.age.store(1, Ordering::Relaxed);
    event.used.store(true, Ordering::Release);
    Ok(id as u32)
}

/// Frees an event; waits on it fail.
pub(crate) fn destroy(id: u32) -> Answer {
    event(id)?.used.swap(false, Ordering::SeqCst);
    announce(id);
    Ok(())
}

/// Sets an event: the flag goes up, the age grows, waiters look again.
pub(crate) fn set(id: u32) -> Answer {
    let event = event(id)?;
    event.age.fetch_add(1, Ordering::AcqRel);
    // Not a plain store: it comes before the look for waiters, as they come before they look at the flag.
    event.signaled.swap(true, Ordering::SeqCst);
    announce(id);
    Ok(())
}

/// Lowers an event's flag. Its age stays.
pub(crate) fn reset(id: u32) -> Answer {
    event(id)?.signaled.store(false, Ordering::Release);
    Ok(())
}

/// Sets every event of an exception's kind with what happened: how a fault reaches the runtime's handler.
pub(crate) fn raise(kind: u32, payload: [u64; 4]) {
    for (id, event) in TABLE.iter().enumerate() {
        if event.used.load(Ordering::Acquire) && event.kind.load(Ordering::Relaxed) == kind {
            for (word, value) in event.payload.iter().zip(payload) {
                word.store(value, Ordering::Relaxed);
            }
            // Destroyed since the look: then there is nobody to tell.
            let _ = set(id as u32);
        }
    }
}

/// Wakes who waits for event `id`.
fn announce(id: u32) {
    if WAITERS[bit(id) as usize].load(Ordering::SeqCst) != 0 {
        EPOCH.fetch_add(1, Ordering::SeqCst);
        futex::wake_bits(&EPOCH, 1 << bit(id));
    }
}

/// `AMDKFD_IOC_WAIT_EVENTS`, on the caller's thread.
///
/// `events` are the caller's structures; ages are written back on success. The kernel answers 0 also for a time-out
/// and tells it in `wait_result`.
pub(crate) fn wait(args: &mut WaitEvents, events: &mut [EventData]) -> Answer {
    if events.iter().any(|data| event(data.event_id).is_err()) {
        return Err(Errno(libc::EINVAL));
    }
    let deadline =
        (args.timeout != FOR_EVER).then(|| Instant::now() + Duration::from_millis(u64::from(args.timeout)));
    let bits = events.iter().fold(0, |bits, data| bits | 1 << bit(data.event_id));
    let waiters = || WAITERS.iter().enumerate().filter(|(index, _)| bits & 1 << index != 0);
    waiters().for_each(|(_, count)| _ = count.fetch_add(1, Ordering::SeqCst));
    args.wait_result = wait_until(events, bits, args.wait_for_all != 0, deadline);
    waiters().for_each(|(_, count)| _ = count.fetch_sub(1, Ordering::SeqCst));
    Ok(())
}

fn wait_until(events: &mut [EventData], bits: u32, all: bool, deadline: Option<Instant>) -> u32 {
    loop {
        let epoch = EPOCH.load(Ordering::SeqCst);
        match take(events, all) {
            Taken::Yes => return RESULT_COMPLETE,
            Taken::Destroyed => return RESULT_FAIL,
            Taken::No => {}
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return RESULT_TIMEOUT;
        }
        futex::wait_bits(&EPOCH, epoch, bits, left);
    }
}

enum Taken {
    Yes,
    No,
    Destroyed,
}

/// Looks whether the wait is satisfied and if so consumes flags and reports ages.
fn take(events: &mut [EventData], all: bool) -> Taken {
    let _guard = LOCK.lock();
    let mut ready = 0;
    for data in events.iter() {
        match event(data.event_id) {
            Err(_) => return Taken::Destroyed,
            Ok(event) => ready += usize::from(is_ready(event, data)),
        }
    }
    let satisfied = if all { ready == events.len() } else { ready > 0 };
    if !satisfied {
        return Taken::No;
    }
    for data in events.iter_mut() {
        let Ok(event) = event(data.event_id) else { continue };
        if !is_ready(event, data) {
            continue;
        }
        match event.kind.load(Ordering::Relaxed) {
            KIND_SIGNAL if data.last_event_age() != 0 => {
                data.set_last_event_age(event.age.load(Ordering::Acquire));
            }
            KIND_MEMORY | KIND_HW_EXCEPTION => {
                data.data = event.payload.each_ref().map(|word| word.load(Ordering::Relaxed));
            }
            _ => {}
        }
        if event.auto_reset.load(Ordering::Relaxed) {
            event.signaled.store(false, Ordering::Release);
        }
    }
    Taken::Yes
}

fn is_ready(event: &Event, data: &EventData) -> bool {
    if event.signaled.load(Ordering::Acquire) {
        return true;
    }
    let wanted = data.last_event_age();
    event.kind.load(Ordering::Relaxed) == KIND_SIGNAL
        && wanted != 0
        && wanted != event.age.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(ids: &[(u32, u64)], all: bool, timeout: u32) -> (u32, Vec<u64>) {
        let mut events: Vec<EventData> = ids.iter().map(|&(id, age)| EventData::new(id, age)).collect();
        let mut args = WaitEvents { wait_for_all: u32::from(all), timeout, ..WaitEvents::default() };
        wait(&mut args, &mut events).unwrap();
        (args.wait_result, events.iter().map(EventData::last_event_age).collect())
    }

    #[test]
    fn age_differs_means_ready_and_is_written_back() {
        let id = create(KIND_SIGNAL, true).unwrap();
        assert_eq!(wait_for(&[(id, 1)], false, 0), (RESULT_TIMEOUT, vec![1]));
        set(id).unwrap();
        assert_eq!(wait_for(&[(id, 1)], false, 0), (RESULT_COMPLETE, vec![2]));
        // The flag is gone, but an old age is still old.
        assert_eq!(wait_for(&[(id, 1)], false, 0), (RESULT_COMPLETE, vec![2]));
        assert_eq!(wait_for(&[(id, 2)], false, 0), (RESULT_TIMEOUT, vec![2]));
        destroy(id).unwrap();
    }

    #[test]
    fn age_zero_asks_for_the_flag_only() {
        let id = create(KIND_SIGNAL, true).unwrap();
        set(id).unwrap();
        assert_eq!(wait_for(&[(id, 0)], false, 0).0, RESULT_COMPLETE);
        assert_eq!(wait_for(&[(id, 0)], false, 0).0, RESULT_TIMEOUT);
        destroy(id).unwrap();
    }

    #[test]
    fn waiting_for_all_takes_nothing_until_all_are_there() {
        let (a, b) = (create(KIND_SIGNAL, true).unwrap(), create(KIND_SIGNAL, true).unwrap());
        set(a).unwrap();
        assert_eq!(wait_for(&[(a, 0), (b, 0)], true, 0).0, RESULT_TIMEOUT);
        set(b).unwrap();
        assert_eq!(wait_for(&[(a, 0), (b, 0)], true, 0).0, RESULT_COMPLETE);
        destroy(a).unwrap();
        destroy(b).unwrap();
    }

    #[test]
    fn a_set_from_another_thread_wakes_a_wait_without_end() {
        let id = create(KIND_SIGNAL, true).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| wait_for(&[(id, 1)], false, FOR_EVER).0);
            set(id).unwrap();
            assert_eq!(waiter.join().unwrap(), RESULT_COMPLETE);
        });
        destroy(id).unwrap();
    }

    // The counts tell it: the other's sleep ends when the epoch moved between its look and its sleep, never for good.
    #[test]
    fn a_set_leaves_waiters_for_other_events_asleep() {
        let ids: Vec<_> = std::iter::repeat_with(|| create(KIND_SIGNAL, true).unwrap()).take(32).collect();
        let [own, other, third] = [ids[0], ids[1], ids[2]];
        let waits = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                // SAFETY: has no preconditions.
                let thread = unsafe { libc::gettid() };
                waits.store(thread.cast_unsigned(), Ordering::Release);
                wait_for(&[(own, 1)], false, FOR_EVER).0
            });
            // Woken by each set, and never satisfied by it.
            let woken = scope.spawn(|| wait_for(&[(other, 0), (third, 0)], true, FOR_EVER).0);
            for id in [own, other] {
                while WAITERS[bit(id) as usize].load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
            }
            let thread = waits.load(Ordering::Acquire);
            wait_until_asleep(thread);
            let before = switches(thread);
            for _ in 0..1000 {
                set(other).unwrap();
            }
            let after = switches(thread);
            for (id, waiter) in [(own, waiter), (third, woken)] {
                set(id).unwrap();
                assert_eq!(waiter.join().unwrap(), RESULT_COMPLETE);
            }
            assert_eq!(after, before, "woken by an event of somebody else");
        });
        ids.into_iter().for_each(|id| destroy(id).unwrap());
    }

    fn status(thread: u32) -> String {
        std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap()
    }

    fn wait_until_asleep(thread: u32) {
        while !status(thread).contains("State:\tS") {
            std::thread::yield_now();
        }
    }

    /// How often a thread went to sleep.
    fn switches(thread: u32) -> String {
        let status = status(thread);
        status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap().to_owned()
    }

    #[test]
    fn destroying_an_event_ends_the_waits_on_it() {
        let id = create(KIND_SIGNAL, true).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut events = [EventData::new(id, 0)];
                let mut args = WaitEvents { timeout: FOR_EVER, ..WaitEvents::default() };
                // Destroyed before the wait began: the kernel refuses the id.
                wait(&mut args, &mut events).map(|()| args.wait_result)
            });
            destroy(id).unwrap();
            let result = waiter.join().unwrap();
            assert!(matches!(result, Ok(RESULT_FAIL) | Err(Errno(libc::EINVAL))), "{result:?}");
        });
    }

    #[test]
    fn exception_reaches_the_events_of_its_kind_with_what_happened() {
        let (memory, signal) = (create(KIND_MEMORY, true).unwrap(), create(KIND_SIGNAL, true).unwrap());
        raise(KIND_MEMORY, [1, 2, 0xDEAD_0000, 4]);
        let mut events = [EventData::new(memory, 0), EventData::new(signal, 0)];
        let mut args = WaitEvents { timeout: 0, ..WaitEvents::default() };
        wait(&mut args, &mut events).unwrap();
        assert_eq!(args.wait_result, RESULT_COMPLETE);
        assert_eq!(events.map(|event| event.data), [[1, 2, 0xDEAD_0000, 4], [0; 4]]);
        destroy(memory).unwrap();
        destroy(signal).unwrap();
    }

    #[test]
    fn unknown_events_are_invalid() {
        for id in [0, 4095, 4096, u32::MAX] {
            assert_eq!(set(id), Err(Errno(libc::EINVAL)));
        }
    }
}
