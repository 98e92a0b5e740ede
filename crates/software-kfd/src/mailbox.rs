//! Hands a device call over to the driver thread and waits for its answer.
//!
//! There is one place: callers take turns behind a futex lock. The place is filled, `state` goes from `EMPTY` to
//! `POSTED`, the driver answers and sets `ANSWERED`, the caller takes the answer and empties the place. Everything is
//! static, so the caller allocates nothing. Device calls are rare (a queue is driven through memory), so one place is
//! enough.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::errno::{self, Answer, Errno};
use crate::fds::File;
use crate::futex::{self, Lock};
use crate::paths::Device;

/// What the application asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Open a device file.
    Open {
        /// Which.
        device: Device,
        /// Flags of `open`.
        flags: c_int,
    },
    /// Ask whether a device file is there.
    Look {
        /// Which.
        device: Device,
    },
    /// An ioctl on one of our files.
    Ioctl {
        /// Which file.
        file: File,
        /// Request number: type, number, direction, size.
        request: u32,
        /// The caller's argument structure, valid for the call.
        argument: u64,
    },
}

const EMPTY: u32 = 0;
const POSTED: u32 = 1;
const ANSWERED: u32 = 2;

/// States of the driver thread.
const ABSENT: u32 = 0;
const STARTING: u32 = 1;
const READY: u32 = 2;
const FAILED: u32 = 3;

static TURN: Lock = Lock::new();
static STATE: AtomicU32 = AtomicU32::new(EMPTY);
static WORDS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static RESULT: AtomicI32 = AtomicI32::new(0);
static DRIVER: AtomicU32 = AtomicU32::new(ABSENT);
/// The process that owns the device; another one (a forked child) has none.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// What the driver answers where it could not start.
static START_ERROR: AtomicI32 = AtomicI32::new(0);

/// Answers one call on the driver thread. Positive or zero: the result; negative: an error number, negated.
pub(crate) type Handler = Box<dyn FnMut(Call) -> c_int>;

/// Whether this process is a forked child of the one that owns the device.
pub(crate) fn in_forked_child() -> bool {
    let owner = OWNER.load(Ordering::Acquire);
    // SAFETY: getpid has no preconditions.
    owner != 0 && owner != unsafe { libc::getpid() }
}

/// Asks the driver, which is started by the first call. Returns the call's result.
///
/// # Errors
/// `ENODEV` in a forked child; what the driver answers otherwise.
pub(crate) fn ask(call: Call) -> Result<c_int, Errno> {
    let before = errno::get();
    // A handler that made a device call while this thread has its turn would wait for itself; and from here on no
    // handler forks a child that believes what this thread has seen.
    let signals = BlockedSignals::new();
    let result = start_driver().map(|()| exchange(call));
    drop(signals);
    errno::set(before);
    match result? {
        result if result < 0 => Err(Errno(-result)),
        result => Ok(result),
    }
}

/// Posts one call and takes its answer.
fn exchange(call: Call) -> c_int {
    let _turn = TURN.lock();
    for (word, value) in WORDS.iter().zip(encode(call)) {
        word.store(value, Ordering::Relaxed);
    }
    STATE.store(POSTED, Ordering::Release);
    futex::wake_all(&STATE);
    while STATE.load(Ordering::Acquire) == POSTED {
        futex::wait(&STATE, POSTED, None);
    }
    let result = RESULT.load(Ordering::Relaxed);
    STATE.store(EMPTY, Ordering::Release);
    result
}

/// All signals of this thread, blocked until dropped.
struct BlockedSignals {
    before: MaybeUninit<libc::sigset_t>,
}

impl BlockedSignals {
    fn new() -> Self {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigfillset initialises the set behind a valid pointer.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: `all` was just initialised and `before` is a valid place for the previous mask; with both valid
        // the call cannot fail, so `before` is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        Self { before }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: `before` was initialised by the pthread_sigmask in `new`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.before.as_ptr(), ptr::null_mut()) };
    }
}

/// Starts the driver thread once and waits until it is ready.
fn start_driver() -> Answer {
    // SAFETY: getpid has no preconditions.
    match claim(&OWNER, &DRIVER, unsafe { libc::getpid() }) {
        Claim::Starts => {
            crate::next::look_up();
            if let Err(Errno(number)) = spawn() {
                finish_start(FAILED, number);
            }
        }
        Claim::Waits => {}
        Claim::Foreign => return Err(Errno(libc::ENODEV)),
    }
    loop {
        match DRIVER.load(Ordering::Acquire) {
            STARTING => futex::wait(&DRIVER, STARTING, None),
            READY => return Ok(()),
            _ => return Err(Errno(START_ERROR.load(Ordering::Relaxed))),
        }
    }
}

/// What a process that wants the driver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Starts it.
    Starts,
    /// Another thread starts it, or did.
    Waits,
    /// The driver is another process's: this one was forked.
    Foreign,
}

/// Claims the device for the process `pid`.
///
/// The owner is there before the driver is anything but absent. A child forked in between then knows that it is not
/// the owner; the other way round it would wait for a thread that it does not have.
fn claim(owner: &AtomicI32, driver: &AtomicU32, pid: i32) -> Claim {
    match owner.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire) {
        Err(other) if other != pid => return Claim::Foreign,
        Ok(_) | Err(_) => {}
    }
    match driver.compare_exchange(ABSENT, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Claim::Starts,
        Err(_) => Claim::Waits,
    }
}

fn finish_start(state: u32, error: c_int) {
    START_ERROR.store(error, Ordering::Relaxed);
    DRIVER.store(state, Ordering::Release);
    futex::wake_all(&DRIVER);
}

/// Starts the thread. The caller has all signals blocked, which the thread and those that it starts inherit: no
/// handler of the application runs on them.
fn spawn() -> Answer {
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the thread identifier's place is valid, default attributes, and `driver_main` takes no argument.
    let error =
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), driver_main, ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(Errno(error)) }
}

extern "C" fn driver_main(_: *mut c_void) -> *mut c_void {
    let prepared = std::panic::catch_unwind(crate::driver::start);
    let mut handler = match prepared {
        Ok(Ok(handler)) => handler,
        Ok(Err(Errno(number))) => {
            finish_start(FAILED, number);
            return ptr::null_mut();
        }
        Err(_) => {
            finish_start(FAILED, libc::EIO);
            return ptr::null_mut();
        }
    };
    finish_start(READY, 0);
    loop {
        serve(&mut handler);
    }
}

/// Waits for one call and answers it. A panic of the driver is the caller's `EIO`, never a hang.
fn serve(handler: &mut Handler) {
    loop {
        match STATE.load(Ordering::Acquire) {
            POSTED => break,
            other => futex::wait(&STATE, other, None),
        }
    }
    let words = [0, 1, 2, 3].map(|index: usize| WORDS[index].load(Ordering::Relaxed));
    let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match decode(words) {
        Some(call) => handler(call),
        None => -libc::EIO,
    }));
    RESULT.store(answered.unwrap_or(-libc::EIO), Ordering::Relaxed);
    STATE.store(ANSWERED, Ordering::Release);
    futex::wake_all(&STATE);
}

const TAG_OPEN_KFD: u64 = 1;
const TAG_OPEN_RENDER: u64 = 2;
const TAG_IOCTL_KFD: u64 = 3;
const TAG_IOCTL_RENDER: u64 = 4;
const TAG_LOOK_KFD: u64 = 5;
const TAG_LOOK_RENDER: u64 = 6;

fn encode(call: Call) -> [u64; 4] {
    match call {
        Call::Open { device: Device::Kfd, flags } => [TAG_OPEN_KFD, 0, flags as u64, 0],
        Call::Open { device: Device::Render { minor }, flags } => {
            [TAG_OPEN_RENDER, u64::from(minor), flags as u64, 0]
        }
        Call::Look { device: Device::Kfd } => [TAG_LOOK_KFD, 0, 0, 0],
        Call::Look { device: Device::Render { minor } } => [TAG_LOOK_RENDER, u64::from(minor), 0, 0],
        Call::Ioctl { file: File::Render(gpu), request, argument } => {
            [TAG_IOCTL_RENDER, u64::from(gpu), u64::from(request), argument]
        }
        Call::Ioctl { request, argument, .. } => [TAG_IOCTL_KFD, 0, u64::from(request), argument],
    }
}

fn decode([tag, which, request, argument]: [u64; 4]) -> Option<Call> {
    Some(match tag {
        TAG_OPEN_KFD => Call::Open { device: Device::Kfd, flags: request as c_int },
        TAG_OPEN_RENDER => {
            Call::Open { device: Device::Render { minor: which as u32 }, flags: request as c_int }
        }
        TAG_LOOK_KFD => Call::Look { device: Device::Kfd },
        TAG_LOOK_RENDER => Call::Look { device: Device::Render { minor: which as u32 } },
        TAG_IOCTL_KFD => Call::Ioctl { file: File::Kfd, request: request as u32, argument },
        TAG_IOCTL_RENDER => {
            Call::Ioctl { file: File::Render(which as u8), request: request as u32, argument }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_the_place_they_travel_in() {
        let calls = [
            Call::Open { device: Device::Kfd, flags: libc::O_RDWR | libc::O_CLOEXEC },
            Call::Open { device: Device::Render { minor: 135 }, flags: 0 },
            Call::Look { device: Device::Kfd },
            Call::Look { device: Device::Render { minor: 128 } },
            Call::Ioctl { file: File::Kfd, request: 0xC010_4B01, argument: 0x7FFF_1234_5678 },
            Call::Ioctl { file: File::Render(7), request: 0xC020_6445, argument: u64::MAX },
        ];
        for call in calls {
            assert_eq!(decode(encode(call)), Some(call));
        }
        assert_eq!(decode([99, 0, 0, 0]), None);
    }

    #[test]
    fn a_child_of_the_owner_is_refused() {
        let (owner, driver) = (AtomicI32::new(0), AtomicU32::new(ABSENT));
        assert_eq!(claim(&owner, &driver, 1), Claim::Starts);
        assert_eq!(claim(&owner, &driver, 1), Claim::Waits);
        assert_eq!(claim(&owner, &driver, 2), Claim::Foreign);
        // Forked when the owner was there and the driver not yet claimed: it must not claim it either.
        driver.store(ABSENT, Ordering::Relaxed);
        assert_eq!(claim(&owner, &driver, 2), Claim::Foreign);
        assert_eq!(driver.load(Ordering::Relaxed), ABSENT);
    }
}
