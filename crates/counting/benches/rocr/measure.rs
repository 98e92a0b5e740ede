//! The measured process: does what its case says and prints one line `measured NUMBER...`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use wavescope_core::AqlPacket;

use crate::Outcome;
use crate::application::{Application, DEPTH, Entries, OF_THE_BATCH};
use crate::case::{Case, Queues, What};
use crate::floor;
use crate::rig::BATCH;
use crate::stage::Stage;

/// Where the C library is.
pub(crate) const LIBRARY: &str = "WAVESCOPE_BENCH_LIBRARY";

const WARM_UP: u64 = 8;

pub(crate) fn run(case: &Case) -> Outcome {
    let start = Instant::now();
    let library = PathBuf::from(std::env::var(LIBRARY)?);
    let application = Application::load(&library)?;
    let stage = Stage::set(case)?;
    match case.what {
        What::Dispatch => dispatch(case, &stage, &application)?,
        What::Handover => handover(case, &stage, &application)?,
        What::Start => {
            one(&stage, &application)?;
            let took = start.elapsed();
            println!("measured {} {}", took.as_micros(), peak_kilobytes());
        }
        What::Idle => {
            one(&stage, &application)?;
            // What the start left to do.
            std::thread::sleep(Duration::from_millis(200));
            let before = processor_time();
            std::thread::sleep(Duration::from_secs(1));
            println!("measured {}", (processor_time() - before).as_micros());
        }
    }
    drop(stage.finish()?);
    stage.leave()
}

/// One dispatch on a queue of its own.
fn one(stage: &Stage, application: &Application) -> Outcome {
    let mut kernel = stage.kernel;
    kernel.set_completion_signal(OF_THE_BATCH);
    let (queue, signals) = (stage.queue(application.pass_on())?, stage.signals()?);
    // SAFETY: the runtime's table.
    let entries = unsafe { Entries::of(stage.table) }?;
    // SAFETY: the kernel stays loaded, the signals stay.
    unsafe { application.run(&entries, queue, &[kernel], 1, signals) }
}

/// What the application submits as a batch.
fn list(case: &Case, stage: &Stage, batch: usize) -> Outcome<Vec<AqlPacket>> {
    if case.queues == Queues::Floor {
        // SAFETY: the runtime's table, which stays.
        return unsafe { floor::list(stage.table, &stage.topology, case.who, &stage.kernel) };
    }
    let mut kernels = vec![stage.kernel; batch];
    if let Some(last) = kernels.last_mut() {
        last.set_completion_signal(OF_THE_BATCH);
    }
    Ok(kernels)
}

/// Feeds one queue per thread; wall and processor time of all of it.
fn feed(
    case: &Case,
    stage: &Stage,
    application: &Application,
    batch: usize,
) -> Outcome<(Duration, Duration)> {
    let list = list(case, stage, batch)?;
    let times = case.dispatches / batch as u64 / case.threads as u64;
    let make = || -> Outcome<_> { Ok((stage.queue(application.pass_on())?, stage.signals()?)) };
    let queues = (0..case.threads).map(|_| make()).collect::<Outcome<Vec<_>>>()?;
    // SAFETY: the runtime's table.
    let entries = unsafe { Entries::of(stage.table) }?;
    // SAFETY: kernel, signals and programs stay.
    let submit = |(queue, signals): (usize, [_; DEPTH]), times| unsafe {
        let queue = std::ptr::with_exposed_provenance_mut(queue);
        application.run(&entries, queue, &list, times, signals).map_err(|error| error.to_string())
    };
    let queues: Vec<_> =
        queues.into_iter().map(|(queue, signals)| (queue.expose_provenance(), signals)).collect();
    for queue in &queues {
        submit(*queue, WARM_UP)?;
    }
    let (start, before) = (Instant::now(), processor_time());
    std::thread::scope(|scope| -> Outcome {
        let threads: Vec<_> = queues.iter().map(|queue| scope.spawn(|| submit(*queue, times))).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    Ok((start.elapsed(), processor_time() - before))
}

fn dispatch(case: &Case, stage: &Stage, application: &Application) -> Outcome {
    let (wall, processor) = feed(case, stage, application, BATCH)?;
    let each = |time: Duration| time.as_nanos() as u64 / case.dispatches;
    println!("measured {} {}", each(wall), each(processor));
    Ok(())
}

/// Kernels one by one on each queue; gaps between two that ran on different ones.
fn handover(case: &Case, stage: &Stage, application: &Application) -> Outcome {
    feed(case, stage, application, 1)?;
    let mut counted = stage.finish()?;
    counted.sort_unstable_by_key(|(_, times)| times.start_ns);
    let pairs = counted.windows(2).map(|pair| (pair[0], pair[1]));
    let changes = pairs.filter(|((before, _), (after, _))| before != after);
    let mut gaps: Vec<_> =
        changes.map(|((_, before), (_, after))| after.start_ns.saturating_sub(before.end_ns)).collect();
    gaps.sort_unstable();
    let at = |percent: usize| gaps.get((gaps.len() * percent / 100).min(gaps.len().saturating_sub(1)));
    let (Some(median), Some(late)) = (at(50), at(99)) else { return Err("no queue ever took over".into()) };
    println!("measured {median} {late} {}", gaps.len());
    Ok(())
}

fn usage() -> libc::rusage {
    // SAFETY: plain data of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the result outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage
}

/// User and system time of the process.
fn processor_time() -> Duration {
    let usage = usage();
    let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, of.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn peak_kilobytes() -> i64 {
    usage().ru_maxrss
}
