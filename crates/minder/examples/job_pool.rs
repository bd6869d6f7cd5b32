//! Bounded concurrency without a thread for each job: two threads share one scheduler.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use minder::jobs::{Attempt, JobHandler, JobPool, JobResult, JobSource, NextJob, SpawnRequest};
use minder::{ChildSetOptions, Command, Error, Outcome, Stdio};

const JOBS: u64 = 30;

/// Supplies numbers as jobs, and checks the exit code of each.
struct Numbers<'a>(&'a AtomicU64);

impl JobSource for Numbers<'_> {
    type Job = u64;

    fn next_job(&mut self) -> NextJob<u64> {
        let job = self.0.fetch_add(1, Ordering::Relaxed);
        if job < JOBS { NextJob::Ready(job) } else { NextJob::Exhausted }
    }
}

impl JobHandler for Numbers<'_> {
    fn prepare(&mut self, _attempt: Attempt, job: &u64) -> Result<SpawnRequest, JobResult> {
        let mut command = Command::new(std::env::current_exe().map_err(|_| JobResult::PermanentFailure)?);
        command.arg(job.to_string()).stdin(Stdio::null());
        Ok(SpawnRequest::new(command))
    }
    fn finished(&mut self, _attempt: Attempt, job: &u64, outcome: Outcome) -> JobResult {
        let expected = Some((job % 3) as i32);
        if outcome.exit.status.code() == expected { JobResult::Success } else { JobResult::Failure }
    }
    fn spawn_failed(&mut self, _attempt: Attempt, _job: &u64, _error: Error) -> JobResult {
        JobResult::Failure
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(number) = std::env::args().nth(1) {
        std::process::exit((number.parse::<u64>()? % 3) as i32);
    }
    let config = minder::jobs::SchedulerOptions::new().max_running(6);
    let pool = JobPool::new(config, Duration::from_secs(5));
    let next = AtomicU64::new(0);
    pool.run(2, &ChildSetOptions::new(), |_index| Numbers(&next))?;
    let counts = pool.counts();
    assert_eq!((counts.succeeded, counts.failed, counts.running), (JOBS, 0, 0));

    println!("job pool: {} jobs by two threads, at most 6 at once", counts.succeeded);
    Ok(())
}
