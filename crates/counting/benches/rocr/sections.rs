//! The tables: which cases each has, and how often each is measured.

use std::process::Command;

use wavescope_hsa_intercept::Technique::{Doorbell, Runtime};
use wavescope_on_rocr::{Gpus, Machine, Profile, not_run};

use crate::Outcome;
use crate::application;
use crate::case::{Case, Queues, What, Who};
use crate::measure::LIBRARY;
use crate::stage::GPU;

/// Times that each case is measured.
const RUNS: usize = 7;
const DISPATCHES: u64 = 50_048;

pub(crate) fn run() -> Outcome {
    let machine = match Machine::new(Profile::Libs, &GPU.parse::<Gpus>()?) {
        Ok(machine) => machine,
        Err(error) => {
            not_run(&error);
            return Ok(());
        }
    };
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let dispatches = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(DISPATCHES);
    let chosen: Vec<_> = arguments.iter().filter_map(|argument| What::named(argument)).collect();
    let wanted = |what| chosen.is_empty() || chosen.contains(&what);
    let runner = Runner { machine, library: application::build()?, dispatches };
    for (what, table) in [
        (What::Dispatch, dispatch as fn(&Runner) -> Outcome),
        (What::Handover, handover),
        (What::Start, start),
        (What::Idle, idle),
    ] {
        if wanted(what) {
            table(&runner)?;
        }
    }
    Ok(())
}

struct Runner {
    machine: Machine,
    library: std::path::PathBuf,
    dispatches: u64,
}

impl Runner {
    /// The numbers of each case and run; the cases take turns.
    fn measure(&self, cases: &[Case]) -> Outcome<Vec<Vec<Vec<u64>>>> {
        let mut results = vec![Vec::new(); cases.len()];
        for _ in 0..RUNS {
            for (case, results) in cases.iter().zip(&mut results) {
                let mut command = self.machine.command_with_table(std::env::current_exe()?);
                command.env(LIBRARY, &self.library);
                case.hand_to(&mut command);
                results.push(numbers(case, &mut command)?);
            }
        }
        Ok(results)
    }

    fn case(&self, what: What, queues: Queues, who: Who, threads: usize) -> Case {
        Case { what, queues, who, threads, dispatches: self.dispatches }
    }
}

fn numbers(case: &Case, command: &mut Command) -> Outcome<Vec<u64>> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("measured "));
    match line {
        Some(line) if output.status.success() => {
            Ok(line.split(' ').map(str::parse).collect::<Result<_, _>>()?)
        }
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{case}: {}\n{text}{errors}", output.status).into())
        }
    }
}

/// Smallest and middle of one number of the runs.
fn best_and_median(runs: &[Vec<u64>], index: usize) -> (u64, u64) {
    let mut values: Vec<_> = runs.iter().map(|run| run[index]).collect();
    values.sort_unstable();
    (values[0], values[values.len() / 2])
}

fn dispatch(runner: &Runner) -> Outcome {
    let of = |queues, who, threads| runner.case(What::Dispatch, queues, who, threads);
    let [runtime, doorbell] = [Queues::Intercepted(Runtime), Queues::Intercepted(Doorbell)];
    // Each case with the one that it is compared with.
    let cases = [
        (of(Queues::Plain, Who::Nobody, 1), 0),
        (of(Queues::PassOn, Who::Nobody, 1), 0),
        (of(runtime, Who::Nobody, 1), 1),
        (of(doorbell, Who::Nobody, 1), 0),
        (of(Queues::Floor, Who::Declined, 1), 0),
        (of(runtime, Who::Declined, 1), 4),
        (of(doorbell, Who::Declined, 1), 4),
        (of(runtime, Who::Declined, 2), 5),
        (of(doorbell, Who::Declined, 2), 6),
        (of(Queues::Floor, Who::Counted, 1), 0),
        (of(runtime, Who::Counted, 1), 9),
        (of(doorbell, Who::Counted, 1), 9),
        (of(runtime, Who::Counted, 2), 10),
        (of(doorbell, Who::Counted, 2), 11),
    ];
    let results = runner.measure(&cases.map(|(case, _)| case))?;
    println!("ns for each of {} dispatches (best and median of {RUNS} runs)", runner.dispatches);
    println!("{:32} {:>8} {:>8} {:>8} {:>8}   wall against", "case", "wall", "median", "cpu", "median");
    for ((case, base), runs) in cases.iter().zip(&results) {
        let ((wall, wall_median), (cpu, cpu_median)) = (best_and_median(runs, 0), best_and_median(runs, 1));
        let (floor, floor_median) = best_and_median(&results[*base], 0);
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        println!(
            "{case:32} {wall:>8} {wall_median:>8} {cpu:>8} {cpu_median:>8}   {:.2} {:.2} of {}",
            ratio(wall, floor),
            ratio(wall_median, floor_median),
            cases[*base].0
        );
    }
    Ok(())
}

fn handover(runner: &Runner) -> Outcome {
    let few = |queues| Case { dispatches: 4_000, ..runner.case(What::Handover, queues, Who::Counted, 2) };
    let cases = [few(Queues::Intercepted(Runtime)), few(Queues::Intercepted(Doorbell))];
    let results = runner.measure(&cases)?;
    println!("\nend of a counted kernel to the start of the next on the other queue, microseconds");
    println!("{:32} {:>8} {:>8} {:>8}", "case", "p50", "p99", "changes");
    for (case, runs) in cases.iter().zip(&results) {
        let [(half, _), (late, _), (changes, _)] = [0, 1, 2].map(|index| best_and_median(runs, index));
        println!("{case:32} {:>8.1} {:>8.1} {changes:>8}", half as f64 / 1e3, late as f64 / 1e3);
    }
    Ok(())
}

/// Without and with interception; the others are compared with the first.
fn around(runner: &Runner, what: What) -> [Case; 5] {
    let [runtime, doorbell] = [Queues::Intercepted(Runtime), Queues::Intercepted(Doorbell)];
    [
        runner.case(what, Queues::Plain, Who::Nobody, 1),
        runner.case(what, runtime, Who::Nobody, 1),
        runner.case(what, doorbell, Who::Nobody, 1),
        runner.case(what, runtime, Who::Counted, 1),
        runner.case(what, doorbell, Who::Counted, 1),
    ]
}

fn start(runner: &Runner) -> Outcome {
    let cases = around(runner, What::Start);
    let results = runner.measure(&cases)?;
    println!("\nfrom main to the end of the first dispatch (best and median of {RUNS} runs)");
    println!("{:32} {:>8} {:>8} {:>8}", "case", "ms", "median", "MB");
    for (case, runs) in cases.iter().zip(&results) {
        let ((time, median), (memory, _)) = (best_and_median(runs, 0), best_and_median(runs, 1));
        let ms = |us: u64| us as f64 / 1e3;
        println!("{case:32} {:>8.1} {:>8.1} {:>8.1}", ms(time), ms(median), memory as f64 / 1024.0);
    }
    Ok(())
}

fn idle(runner: &Runner) -> Outcome {
    let cases = around(runner, What::Idle);
    let results = runner.measure(&cases)?;
    println!("\nprocessor time of an idle second, ms (best and median of {RUNS} runs)");
    for (case, runs) in cases.iter().zip(&results) {
        let (time, median) = best_and_median(runs, 0);
        println!("{case:32} {:>8.2} {:>8.2}", time as f64 / 1e3, median as f64 / 1e3);
    }
    Ok(())
}
