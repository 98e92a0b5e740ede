//! The system calls of one thread while it does something, by `strace`.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longer than a tracer needs to attach.
const SOON: Duration = Duration::from_secs(20);

/// System calls of `work`, in order, on a thread that does `warm_up` first; `None`, with the reason printed, where no
/// tracer can be had.
pub(crate) fn system_calls(warm_up: impl FnOnce() + Send, work: impl FnOnce() + Send) -> Option<Vec<String>> {
    // SAFETY: only says that any process may trace this one, as a tracer that it starts itself must.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
    let (attached, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (send, thread) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            warm_up();
            // SAFETY: has no preconditions.
            send.send(unsafe { libc::gettid() }).unwrap();
            // Not a system call, as long as it lasts.
            while !attached.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            mark();
            work();
            mark();
            over.store(true, Ordering::Release);
        });
        let thread = thread.recv().unwrap();
        let tracer = Tracer::attach(thread);
        attached.store(true, Ordering::Release);
        let tracer = tracer.inspect_err(|reason| println!("NOT RUN: {reason}")).ok()?;
        while !over.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        Some(between_marks(&tracer.end()))
    })
}

/// A system call that nobody else makes.
fn mark() {
    // SAFETY: has no preconditions.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

fn between_marks(log: &str) -> Vec<String> {
    let is_mark = |line: &&str| line.starts_with("getppid(");
    let inside = log.lines().skip_while(|line| !is_mark(line)).skip(1).take_while(|line| !is_mark(line));
    assert_eq!(log.lines().filter(is_mark).count(), 2, "{log}");
    inside.map(str::to_owned).collect()
}

struct Tracer {
    strace: Child,
    log: tempfile::NamedTempFile,
}

impl Tracer {
    fn attach(thread: i32) -> Result<Self, String> {
        let log = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let mut command = Command::new("strace");
        command.args(["-p", &thread.to_string(), "-o"]).arg(log.path()).stderr(Stdio::null());
        // What makes this process run on another runtime is not for the tracer.
        command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
        let strace = command.spawn().map_err(|error| format!("needs strace: {error}"))?;
        let mut tracer = Self { strace, log };
        let start = Instant::now();
        while !is_traced(thread) {
            if let Ok(Some(status)) = tracer.strace.try_wait() {
                return Err(format!("strace may not attach: {status}"));
            }
            if start.elapsed() > SOON {
                return Err("strace did not attach".to_owned());
            }
            std::thread::yield_now();
        }
        Ok(tracer)
    }

    /// Ends it; what it wrote.
    fn end(mut self) -> String {
        // SAFETY: a child that was not waited for yet.
        unsafe { libc::kill(self.strace.id().cast_signed(), libc::SIGINT) };
        self.strace.wait().unwrap();
        std::fs::read_to_string(self.log.path()).unwrap()
    }
}

fn is_traced(thread: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
}
