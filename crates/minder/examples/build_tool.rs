//! `build_tool < FILE`: builds in parallel, and stops at the first failure. Each line of the file is a step,
//! the earlier steps that it needs, and a command: `program library main: cc -o program library.o main.o`.

#![expect(clippy::print_stderr, reason = "a program of the command line")]

use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
use minder::jobs::{JobResult, NextAction, Scheduler, SchedulerOptions};
use minder::{ChildSet, ChildSetOptions, Command, Event, Signal, SpawnOptions, Stdio, Termination};
use std::io::{self, Read, Seek};
use std::{collections::HashMap, error::Error, thread::available_parallelism, time::Duration, time::Instant};

fn main() -> minder::Result<()> {
    let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    let ending = build(&mut guard).unwrap_or_else(|error| {
        eprintln!("build_tool: {error}");
        ExitMode::Status(2)
    });
    guard.terminate(ending) // with what steps have left running
}

fn build(guard: &mut ProcessGuard) -> Result<ExitMode, Box<dyn Error>> {
    let mut scheduler = Scheduler::new(SchedulerOptions::new().max_running(available_parallelism()?.get()));
    let mut numbers = HashMap::new();
    for line in io::read_to_string(io::stdin())?.lines() {
        let (names, command) = line.split_once(':').ok_or_else(|| format!("no `:` in `{line}`"))?;
        let mut names = names.split_whitespace().map(str::to_owned);
        let step = names.next().unwrap_or_default();
        let number = |need| numbers.get(&need).copied().ok_or_else(|| format!("no step `{need}` so far"));
        let needs = names.map(number).collect::<Result<Vec<u64>, _>>()?;
        numbers.insert(step.clone(), scheduler.submit_after((step, command.trim().to_owned()), &needs, 0)?);
    }
    scheduler.close();
    guard.wait_ready()?;
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let mut running = HashMap::new();
    while !scheduler.is_exhausted() {
        while let NextAction::Start(attempt, step) = scheduler.next(Instant::now()) {
            let output = tempfile::tempfile()?;
            let mut command = Command::new("sh");
            command.args(["-c", &step.1]).stdin(Stdio::null()).stdout(output.try_clone()?).stderr_to_stdout();
            running.insert(set.spawn(&command, SpawnOptions::new())?, (attempt, step, output));
        }
        if let Some(signal @ (Signal::INT | Signal::TERM | Signal::HUP)) = guard.next_signal() {
            return Ok(ExitMode::Signal(signal));
        }
        let event = set.next_event(Some(Duration::from_millis(100)))?.into_event();
        let Some(Event::Done { child, outcome, .. }) = event else { continue };
        let Some((attempt, step, mut output)) = running.remove(&child) else { continue };
        if !outcome.exit.status.success() {
            eprintln!("build_tool: {} failed ({}): {}", step.0, outcome.exit.status, step.1);
            output.rewind()?;
            io::copy(&mut output.take(1 << 20), &mut io::stderr())?;
            set.kill_all(Termination::graceful(Duration::from_secs(2)))?; // a compiler removes half a file
            set.wait_all(Some(Duration::from_secs(5)), drop)?;
            return Ok(ExitMode::Status(1));
        }
        scheduler.finish(attempt, step, JobResult::Success, Instant::now());
    }
    Ok(ExitMode::Status(0))
}
