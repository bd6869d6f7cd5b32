//! Bounded concurrency without a thread a job: two loops over sets of children share one schedule.

#![expect(clippy::print_stdout, reason = "an example says what it saw")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use minder::exec::{Crew, Launch, Outputs, Rules, Start, Supply, Verdict, Worker};
use minder::{ChildSet, Command, Error, Event, Kill, Limits, Outcome, SpawnOptions, Stdio};

const JOBS: u64 = 30;

/// One loop's view: where jobs come from, what a job is, and what becomes of it.
struct Numbers<'a>(&'a AtomicU64);

impl Worker for Numbers<'_> {
    type Job = u64;

    fn supply(&mut self) -> Supply<u64> {
        let job = self.0.fetch_add(1, Ordering::Relaxed);
        if job < JOBS { Supply::Job(job) } else { Supply::End }
    }
    fn launch(&mut self, _start: Start, job: &u64) -> Result<Launch, Verdict> {
        let mut command = Command::new(std::env::current_exe().map_err(|_| Verdict::FailedForGood)?);
        command.arg(job.to_string()).stdin(Stdio::Null);
        Ok(Launch { command, options: SpawnOptions::default() })
    }
    fn event(&mut self, _: Start, _: &u64, _: Event, _: &mut Outputs<'_>) -> Option<Kill> {
        None
    }
    fn done(&mut self, _start: Start, job: &u64, outcome: Outcome) -> Verdict {
        let right = outcome.exit.status.code() == Some((job % 3) as i32);
        if right { Verdict::Succeeded } else { Verdict::Failed }
    }
    fn refused(&mut self, _start: Start, _job: &u64, _error: Error) -> Verdict {
        Verdict::Failed
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(number) = std::env::args().nth(1) {
        std::process::exit((number.parse::<u64>()? % 3) as i32);
    }
    let mut rules = Rules::default();
    rules.degree = 6;
    let (crew, next) = (Crew::new(rules, Duration::from_secs(5)), AtomicU64::new(0));
    let drive = |place| crew.drive(&mut ChildSet::new(Limits::default())?, place, 2, &mut Numbers(&next));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| drive(1));
        drive(0).and(other.join().expect("a loop that does not panic"))
    })?;
    let counts = crew.counts();
    assert_eq!((counts.succeeded, counts.failed, counts.running), (JOBS, 0, 0));

    println!("exec: {} jobs by two loops, at most 6 at once, {} failed", counts.succeeded, counts.failed);
    Ok(())
}
