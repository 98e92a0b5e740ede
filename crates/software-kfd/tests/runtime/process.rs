//! What the driver does to the process that it lives in.

use std::ffi::CString;
use std::time::Duration;

use wavescope_on_rocr::{Gpus, Machine, Profile, not_run};
use wavescope_workload::{Batch, Launch};

use crate::rig::{SOON, on_runtime};

/// Processor time of this process so far.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How often threads of this process gave their processor away to wait, so far.
fn waits() -> u64 {
    let of_thread = |status: String| {
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.map_or(0, |count| count.trim().parse::<u64>().unwrap())
    };
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    // One may end meanwhile.
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("status")).ok())
        .map(of_thread)
        .sum()
}

fn open(path: &str) -> Result<i32, i32> {
    let path = CString::new(path).unwrap();
    // SAFETY: a C string.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if fd < 0 { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) } else { Ok(fd) }
}

/// `AMDKFD_IOC_GET_VERSION` of `linux/kfd_ioctl.h`.
const GET_VERSION: libc::c_ulong = 0x8008_4B01;

fn version(fd: i32) -> Result<[u32; 2], i32> {
    let mut version = [0_u32; 2];
    // SAFETY: the request writes two words to a valid place.
    let result = unsafe { libc::ioctl(fd, GET_VERSION, version.as_mut_ptr()) };
    if result < 0 { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) } else { Ok(version) }
}

#[test]
fn queues_that_have_nothing_to_do_cost_next_to_nothing() {
    on_runtime(&["gfx942"], module_path!(), "queues_that_have_nothing_to_do_cost_next_to_nothing", |rig| {
        let (_module, kernel) = rig.empty();
        let queues: Vec<_> = (0..32).map(|_| rig.application.queue(rig.gpu(), 64).unwrap()).collect();
        for queue in &queues {
            let mut batch = Batch::new();
            batch.launch(Launch::new(kernel.clone(), [64, 1, 1], [64, 1, 1]));
            queue.submit(&batch).unwrap().wait(SOON).unwrap();
        }
        // Until the last consumer sleeps.
        std::thread::sleep(Duration::from_millis(500));
        let (before, waits_before) = (cpu_time(), waits());
        std::thread::sleep(Duration::from_secs(2));
        let (used, waits) = (cpu_time() - before, waits().saturating_sub(waits_before));
        // One thread that looks at all doorbells every 5 ms waits 400 times; one for each queue, 12,800 times. On a slow
        // machine they are fewer, never more.
        assert!(waits < 1200, "{waits} times somebody waited anew in 2 s");
        assert!(used < Duration::from_millis(200), "somebody spins: {used:?} of processor time in 2 s");
        // And they wake again.
        for queue in &queues {
            let mut batch = Batch::new();
            batch.launch(Launch::new(kernel.clone(), [64, 1, 1], [64, 1, 1]));
            queue.submit(&batch).unwrap().wait(SOON).unwrap();
        }
    });
}

#[test]
fn forked_child_has_no_device_and_the_parent_keeps_its_own() {
    on_runtime(
        &["gfx942"],
        module_path!(),
        "forked_child_has_no_device_and_the_parent_keeps_its_own",
        |rig| {
            let fd = open("/dev/kfd").unwrap();
            assert_eq!(version(fd), Ok([1, 17]));
            // SAFETY: the child only makes system calls and leaves by _exit.
            match unsafe { libc::fork() } {
                0 => {
                    let refused = version(fd) == Err(libc::ENODEV)
                        && open("/dev/kfd") == Err(libc::ENODEV)
                        && open("/dev/dri/renderD128") == Err(libc::ENODEV)
                        && open("/dev/null").is_ok();
                    // SAFETY: ends the child without running anything of the parent's.
                    unsafe { libc::_exit(if refused { 7 } else { 1 }) }
                }
                child => {
                    let mut status = 0;
                    // SAFETY: `status` is a valid place.
                    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
                }
            }
            assert_eq!(version(fd), Ok([1, 17]));
            let (_module, kernel) = rig.empty();
            let mut batch = Batch::new();
            batch.launch(Launch::new(kernel, [64, 1, 1], [64, 1, 1]));
            let queue = rig.application.queue(rig.gpu(), 64).unwrap();
            queue.submit(&batch).unwrap().wait(SOON).unwrap();
        },
    );
}

#[test]
fn descriptors_and_errors_behave_as_the_kernels() {
    on_runtime(&["gfx942"], module_path!(), "descriptors_and_errors_behave_as_the_kernels", |_| {
        let fd = open("/dev/kfd").unwrap();
        // SAFETY: duplicates a descriptor.
        let copy = unsafe { libc::dup(fd) };
        assert_eq!(version(copy), Ok([1, 17]));
        // SAFETY: closes a descriptor that nobody else uses.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        assert_eq!(version(fd), Err(libc::EBADF));
        assert_eq!(version(copy), Ok([1, 17]));
        assert_eq!(open("/dev/dri/renderD250"), Err(libc::ENOENT));
        // SAFETY: a request without an argument that no driver knows.
        assert_eq!(unsafe { libc::ioctl(copy, 0x4B7F, 0) }, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOTTY));
        // A success leaves errno alone.
        // SAFETY: glibc returns the place of the calling thread's errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: valid for this thread, and nobody else writes it.
        unsafe { errno.write(77) };
        version(copy).unwrap();
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(77));
    });
}

#[test]
fn preloaded_shell_forks_and_runs_programs_as_ever() {
    let gpus: Gpus = "gfx942".parse().unwrap();
    let machine = match Machine::new(Profile::Libs, &gpus) {
        Ok(machine) => machine,
        Err(error) => return not_run(&error),
    };
    let script = "for i in 1 2 3; do (echo $i; exec 3</dev/null; cat /proc/self/comm <&3 2>&1); done | sort | uniq -c; \
                  test -e /dev/kfd; ls /nowhere 2>/dev/null || echo $?";
    let output = machine.command_in_root("bash", &[]).args(["-c", script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert_eq!(lines, ["1 1", "1 2", "1 3", "3 cat", "2"], "{}", String::from_utf8_lossy(&output.stderr));
}
