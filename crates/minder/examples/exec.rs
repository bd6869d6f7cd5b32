//! Bounded concurrency without a thread a job: two loops over sets of children share one schedule.

#![expect(clippy::print_stdout, reason = "an example says what it saw")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use minder::jobs::{
    Attempt, ChildControl, JobHandler, JobPool, JobResult, NextJob, SchedulerConfig, SpawnRequest,
};
use minder::{ChildSet, ChildSetConfig, Command, Error, Event, Outcome, SpawnOptions, Stdio, Termination};

const JOBS: u64 = 30;

/// One loop's view: where jobs come from, what a job is, and what becomes of it.
struct Numbers<'a>(&'a AtomicU64);

impl JobHandler for Numbers<'_> {
    type Job = u64;

    fn next_job(&mut self) -> NextJob<u64> {
        let job = self.0.fetch_add(1, Ordering::Relaxed);
        if job < JOBS { NextJob::Ready(job) } else { NextJob::Exhausted }
    }
    fn prepare(&mut self, _start: Attempt, job: &u64) -> Result<SpawnRequest, JobResult> {
        let mut command = Command::new(std::env::current_exe().map_err(|_| JobResult::PermanentFailure)?);
        command.arg(job.to_string()).stdin(Stdio::Null);
        Ok(SpawnRequest { command, options: SpawnOptions::default() })
    }
    fn event(&mut self, _: Attempt, _: &u64, _: Event, _: &mut ChildControl<'_>) -> Option<Termination> {
        None
    }
    fn finished(&mut self, _start: Attempt, job: &u64, outcome: Outcome) -> JobResult {
        let right = outcome.exit.status.code() == Some((job % 3) as i32);
        if right { JobResult::Success } else { JobResult::Failure }
    }
    fn spawn_failed(&mut self, _start: Attempt, _job: &u64, _error: Error) -> JobResult {
        JobResult::Failure
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(number) = std::env::args().nth(1) {
        std::process::exit((number.parse::<u64>()? % 3) as i32);
    }
    let mut rules = SchedulerConfig::default();
    rules.max_running = 6;
    let (crew, next) = (JobPool::new(rules, Duration::from_secs(5)), AtomicU64::new(0));
    let drive = |place| {
        crew.run_worker(&mut ChildSet::new(ChildSetConfig::default())?, place, 2, &mut Numbers(&next))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| drive(1));
        drive(0).and(other.join().expect("a loop that does not panic"))
    })?;
    let counts = crew.counts();
    assert_eq!((counts.succeeded, counts.failed, counts.running), (JOBS, 0, 0));

    println!("exec: {} jobs by two loops, at most 6 at once, {} failed", counts.succeeded, counts.failed);
    Ok(())
}
