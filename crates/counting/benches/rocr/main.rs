//! What interception and counting cost a whole dispatch on the real ROCm runtime above the software GPU: wall and
//! processor time in nanoseconds, batches of 64, medians of 5 runs in processes of their own. Numbers of one machine are
//! comparable with each other, not with those of another.
//!
//! `cargo bench -p wavescope-counting --bench rocr [-- DISPATCHES]`

use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hsa_sys::HsaApiTable;
use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{ClaimTable, ContextId, Interception, Overflow, Topology, record_stream};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Interceptor, Options, ProgramMemory, Technique};
use wavescope_on_rocr::{Gpus, Machine, Profile, runtime_table};
use wavescope_workload::{Application, Batch, Launch, kernels};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const BATCH: u32 = 64;
const RUNS: usize = 5;
const LIMIT: Duration = Duration::from_secs(120);

/// Name, technique, whom to ask, queues.
const CASES: [(&str, Option<Technique>, Who, usize); 9] = [
    ("plain queue, no tool", None, Who::Nobody, 1),
    ("runtime, nobody subscribed", Some(Technique::Runtime), Who::Nobody, 1),
    ("doorbell, nobody subscribed", Some(Technique::Doorbell), Who::Nobody, 1),
    ("runtime, declined", Some(Technique::Runtime), Who::Declined, 1),
    ("doorbell, declined", Some(Technique::Doorbell), Who::Declined, 1),
    ("runtime, SQ_WAVES counted", Some(Technique::Runtime), Who::Counted, 1),
    ("doorbell, SQ_WAVES counted", Some(Technique::Doorbell), Who::Counted, 1),
    ("runtime, counted, two queues", Some(Technique::Runtime), Who::Counted, 2),
    ("doorbell, counted, two queues", Some(Technique::Doorbell), Who::Counted, 2),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    Declined,
    Counted,
}

/// Set in the measured process: index of the case.
const CASE: &str = "WAVESCOPE_BENCH_CASE";
const DISPATCHES: &str = "WAVESCOPE_BENCH_DISPATCHES";

fn main() -> Outcome {
    if let Ok(case) = std::env::var(CASE) {
        let (_, technique, who, queues) = CASES[case.parse::<usize>()?];
        let dispatches = std::env::var(DISPATCHES)?.parse()?;
        return measure(technique, who, queues, dispatches);
    }
    let dispatches = std::env::args().skip(1).find(|argument| argument.parse::<u32>().is_ok());
    let dispatches = dispatches.unwrap_or_else(|| "20000".to_owned());
    let machine = match Machine::new(Profile::Libs, &"gfx942".parse::<Gpus>()?) {
        Ok(machine) => machine,
        Err(error) => {
            println!("NOT RUN: {error}");
            return Ok(());
        }
    };
    println!("{:32} {:>10} {:>10}   ns for each dispatch, {dispatches} dispatches", "case", "wall", "cpu");
    for (index, (name, ..)) in CASES.iter().enumerate() {
        let run = || {
            let mut command = machine.command_with_table(std::env::current_exe()?);
            run_case(command.env(CASE, index.to_string()).env(DISPATCHES, &dispatches))
        };
        let mut runs = (0..RUNS).map(|_| run()).collect::<Outcome<Vec<_>>>()?;
        runs.sort_unstable();
        let (wall, cpu) = runs[RUNS / 2];
        println!("{name:32} {wall:>10} {cpu:>10}");
    }
    Ok(())
}

/// Wall and processor time of a process that measures one case.
fn run_case(command: &mut Command) -> Outcome<(u64, u64)> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers =
        text.lines().rev().find_map(|line| line.strip_prefix("measured ")).unwrap_or("").split(' ');
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    match (next(), next()) {
        (Some(wall), Some(cpu)) => Ok((wall, cpu)),
        _ => Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn measure(technique: Option<Technique>, who: Who, queues: usize, dispatches: u32) -> Outcome {
    let table = runtime_table()?.cast_mut();
    let gpus: Gpus = "gfx942".parse()?;
    let topology = Topology::read(&gpus.folder()?)?;
    let interceptor = technique.map(|technique| intercept(table, &topology, technique)).transpose()?;
    let counting = match (&interceptor, who) {
        (Some(interceptor), Who::Declined | Who::Counted) => {
            Some(count(interceptor, &topology, who == Who::Counted)?)
        }
        _ => None,
    };
    // SAFETY: the runtime's table lives to the end of the process; entries were replaced for good.
    let application = unsafe { Application::open(table) }?;
    let gpu = &application.gpus()[0];
    let module = application.load(gpu, kernels::vectors(gpu.target())?)?;
    let mut batch = Batch::new();
    for _ in 0..BATCH {
        batch.launch(Launch::new(module.kernel("empty")?, [64, 1, 1], [64, 1, 1]));
    }
    let rounds = dispatches / BATCH / queues as u32;
    let owners = (0..queues).map(|_| application.queue(gpu, 256)).collect::<Result<Vec<_>, _>>()?;
    let (wall, cpu) = std::thread::scope(|scope| -> Outcome<(u64, u64)> {
        for queue in &owners {
            queue.submit(&batch)?.wait(LIMIT)?;
        }
        let (start, before) = (Instant::now(), processor_time());
        let threads: Vec<_> = owners
            .iter()
            .map(|queue| {
                let batch = &batch;
                scope.spawn(move || (0..rounds).try_for_each(|_| queue.submit(batch)?.wait(LIMIT).map(drop)))
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        let (wall, cpu) = (start.elapsed(), processor_time().saturating_sub(before));
        let total = u128::from(rounds) * u128::from(BATCH) * queues as u128;
        Ok(((wall.as_nanos() / total) as u64, (cpu.as_nanos() / total) as u64))
    })?;
    if let Some(counting) = counting {
        counting.stop(LIMIT)?;
    }
    println!("measured {wall} {cpu}");
    Ok(())
}

fn intercept(
    table: *mut HsaApiTable,
    topology: &Topology,
    technique: Technique,
) -> Outcome<Arc<Interceptor>> {
    let options = Options { technique: Some(technique), ..Options::default() };
    // SAFETY: the runtime's own table; nobody else uses it yet.
    Ok(unsafe { Interceptor::install(table, Some(topology), options) }?)
}

fn count(interceptor: &Arc<Interceptor>, topology: &Topology, count: bool) -> Outcome<DispatchCounting> {
    let agent = topology.agents().first().ok_or("no GPU")?;
    let memory: Arc<dyn Memory> = Arc::new(ProgramMemory::new(interceptor.hsa().clone(), agent.id));
    let config = CounterConfig::new(agent, &["SQ_WAVES"], &Builtin, memory, PoolSize::default())?;
    let (sink, records) = record_stream(1, Overflow::DropNewest);
    drop(records);
    let interception: Arc<dyn Interception> = Arc::<Interceptor>::clone(interceptor);
    let counting = DispatchCounting::new(Setup {
        context: ContextId(1),
        agents: vec![agent.id],
        interception,
        claims: Arc::new(ClaimTable::new()),
        choose: Arc::new(move |_| Choice { config: count.then(|| Arc::clone(&config)), user_data: 0 }),
        delivery: Delivery::Stream(sink),
    })?;
    counting.start()?;
    Ok(counting)
}

/// User and system time of the process.
fn processor_time() -> Duration {
    // `man 5 proc`: utime and stime are the fields 14 and 15, in hundredths of a second.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
