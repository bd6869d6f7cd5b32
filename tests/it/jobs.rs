//! A crew over real children: two loops, as the command has them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use minder::jobs::{
    Attempt, ChildControl, JobHandler, JobPool, JobResult, NextJob, SchedulerConfig, SpawnRequest,
};
use minder::{
    ChildSet, ChildSetConfig, Command, Error, Event, Outcome, SpawnOptions, Stdio, Termination, Token,
};

use crate::support::{patience, patterned, quiet_child, test_child};

mod control;
#[cfg(unix)] // A limit of descriptors.
mod resource_shortage;
#[cfg(unix)] // Windows has no way to suspend a process.
mod suspend;

const LOOPS: usize = 2;
const LONG: &str = "sleep-ms 600000";

/// What two loops run, and what became of it.
struct Site {
    crew: JobPool<Command>,
    queue: Mutex<VecDeque<Command>>,
    log: Mutex<Log>,
    bell: Condvar,
    /// Its holder keeps the idle workers busy.
    gate: Mutex<()>,
    /// How many loops are at the gate.
    at_gate: AtomicUsize,
    /// How many run at most, by the workers' own judgement.
    admitted: AtomicUsize,
}

#[derive(Debug, Default)]
struct Log {
    starts: Vec<(Attempt, Instant)>,
    /// With the loop.
    running: HashMap<u64, (usize, Token)>,
    /// How many ran at once.
    peak: usize,
    ends: Vec<(Attempt, Outcome)>,
    /// Of each end whether it was the last attempt.
    last: Vec<bool>,
    text: HashMap<u64, Vec<u8>>,
    /// Jobs that are to be killed by their loop.
    doomed: HashSet<u64>,
    /// Bytes for the input of every job.
    input: Vec<u8>,
}

/// One loop's worker.
struct Hand<'a> {
    site: &'a Site,
    place: usize,
    /// How much of the input each job has.
    written: HashMap<u64, usize>,
}

impl Site {
    fn new(rules: SchedulerConfig, jobs: impl IntoIterator<Item = Command>) -> Self {
        Self {
            crew: JobPool::new(rules, Duration::from_secs(600)),
            queue: Mutex::new(jobs.into_iter().collect()),
            log: Mutex::default(),
            bell: Condvar::new(),
            gate: Mutex::default(),
            at_gate: AtomicUsize::new(0),
            admitted: AtomicUsize::new(usize::MAX),
        }
    }

    /// Runs all jobs; `control` meanwhile does as it likes. A failure of it ends the jobs.
    fn run(&self, control: impl FnOnce(&Self)) {
        struct End<'a>(&'a Site);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.crew.kill();
                }
            }
        }
        std::thread::scope(|scope| {
            let loops: Vec<_> = (0..LOOPS).map(|place| scope.spawn(move || self.work(place))).collect();
            let _end = End(self);
            control(self);
            for worker in loops {
                worker.join().expect("join worker loop");
            }
        });
    }

    fn work(&self, place: usize) {
        let mut set = ChildSet::new(ChildSetConfig::default()).expect("create set");
        let mut hand = Hand { site: self, place, written: HashMap::new() };
        self.crew.run_worker(&mut set, place, LOOPS, &mut hand).expect("run worker");
    }

    fn note(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log.lock().expect("lock log"));
        self.bell.notify_all();
    }

    /// Waits until the log is as it should be.
    fn await_log(&self, what: &str, enough: impl Fn(&Log) -> bool) {
        let mut log = self.log.lock().expect("lock log");
        while !enough(&log) {
            let left = patience().saturating_duration_since(Instant::now());
            let (next, late) = self.bell.wait_timeout(log, left).expect("wait for child");
            log = next;
            assert!(!late.timed_out() || enough(&log), "not in time: {what}: {log:?}");
        }
    }

    /// Fails if the log matches `bad` within 100 ms.
    fn never(&self, what: &str, bad: impl Fn(&Log) -> bool) {
        let end = Instant::now() + Duration::from_millis(100);
        let mut log = self.log.lock().expect("lock log");
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            assert!(!bad(&log), "{what}: {log:?}");
            log = self.bell.wait_timeout(log, left).expect("wait for child").0;
        }
    }

    /// Returns how many jobs have started, and how many have finished.
    fn seen(&self) -> (usize, usize) {
        let log = self.log.lock().expect("lock log");
        (log.starts.len(), log.ends.len())
    }

    /// Has the loops kill these jobs.
    fn end(&self, jobs: impl IntoIterator<Item = u64>) {
        self.note(|log| log.doomed.extend(jobs));
        self.crew.wake();
    }

    fn end_running(&self) {
        let running: Vec<u64> = self.log.lock().expect("lock log").running.keys().copied().collect();
        self.end(running);
    }
}

impl Hand<'_> {
    /// Writes what there is room for.
    fn feed(&mut self, start: Attempt, token: Token, outputs: &mut ChildControl<'_>) {
        let input = self.site.log.lock().expect("lock log").input.clone();
        if input.is_empty() {
            return;
        }
        let written = self.written.entry(start.job).or_default();
        loop {
            match outputs.write(token, &input[*written..]).expect("write to stdin") {
                0 => break,
                count => *written += count,
            }
        }
        if *written == input.len() {
            outputs.close_stdin(token).expect("close stdin");
        }
    }
}

impl JobHandler for Hand<'_> {
    type Job = Command;

    fn next_job(&mut self) -> NextJob<Command> {
        self.site.queue.lock().expect("lock queue").pop_front().map_or(NextJob::Exhausted, NextJob::Ready)
    }

    fn admit(&mut self, _start: Attempt, running: u64) -> bool {
        (running as usize) < self.site.admitted.load(Ordering::SeqCst)
    }

    fn prepare(&mut self, _start: Attempt, job: &Command) -> Result<SpawnRequest, JobResult> {
        Ok(SpawnRequest { command: job.clone(), options: SpawnOptions::default() })
    }

    fn started(&mut self, start: Attempt, _job: &Command, token: Token, outputs: &mut ChildControl<'_>) {
        let place = self.place;
        self.site.note(|log| {
            log.starts.push((start, Instant::now()));
            log.running.insert(start.job, (place, token));
            log.peak = log.peak.max(log.running.len());
        });
        self.feed(start, token, outputs);
    }

    fn event(
        &mut self,
        start: Attempt,
        _job: &Command,
        event: Event,
        outputs: &mut ChildControl<'_>,
    ) -> Option<Termination> {
        match event {
            Event::Output(_, _, chunk) => {
                self.site.note(|log| log.text.entry(start.job).or_default().extend_from_slice(&chunk));
            }
            Event::Writable(token) => self.feed(start, token, outputs),
            _ => (),
        }
        None
    }

    fn finished(&mut self, start: Attempt, _job: &Command, outcome: Outcome) -> JobResult {
        let last = self.site.crew.is_last_attempt(start);
        self.site.note(|log| {
            log.running.remove(&start.job);
            // Another attempt is not meant.
            log.doomed.remove(&start.job);
            log.ends.push((start, outcome));
            log.last.push(last);
        });
        if outcome.exit.status.success() { JobResult::Success } else { JobResult::Failure }
    }

    fn spawn_failed(&mut self, start: Attempt, job: &Command, error: Error) -> JobResult {
        panic!("{start:?} {job:?}: {error}");
    }

    fn idle(&mut self, outputs: &mut ChildControl<'_>) {
        self.site.at_gate.fetch_add(1, Ordering::SeqCst);
        drop(self.site.gate.lock().expect("lock gate"));
        self.site.at_gate.fetch_sub(1, Ordering::SeqCst);
        let log = self.site.log.lock().expect("lock log");
        for (place, token) in log.doomed.iter().filter_map(|job| log.running.get(job)) {
            if *place == self.place {
                outputs.kill(*token, Termination::IMMEDIATE).expect("kill child");
            }
        }
    }
}

fn degree(degree: usize) -> SchedulerConfig {
    let mut rules = SchedulerConfig::default();
    rules.max_running = degree;
    rules
}
