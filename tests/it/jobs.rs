//! A pool over real children: two workers, as the command has them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use minder::jobs::{
    Attempt, ChildControl, JobHandler, JobPool, JobResult, JobSource, NextJob, QueueOrder, SchedulerOptions,
    SpawnRequest,
};
use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, Error, ErrorKind, Event, Outcome, Stdio, Termination,
};

use crate::support::{patience, patterned, quiet_child, test_child};

mod control;
mod executor;
#[cfg(unix)] // A limit of descriptors.
mod resource_shortage;
#[cfg(unix)] // Windows has no way to suspend a process.
mod suspend;

const WORKERS: usize = 2;
const LONG: &str = "sleep-ms 600000";

/// A pool with two workers, its jobs, and a log of what happened.
struct PoolTest {
    pool: JobPool<Command>,
    queue: Mutex<VecDeque<Command>>,
    log: Mutex<Log>,
    changed: Condvar,
    /// Its holder keeps the idle workers busy.
    idle_lock: Mutex<()>,
    /// The number of workers that wait for `idle_lock`.
    idle_blocked: AtomicUsize,
    /// The most jobs that run at once, by the workers' own judgement.
    admission_limit: AtomicUsize,
}

#[derive(Debug, Default)]
struct Log {
    starts: Vec<(Attempt, Instant)>,
    /// The worker and the id of each.
    running: HashMap<u64, (usize, ChildId)>,
    /// The most jobs that ran at once.
    peak: usize,
    ends: Vec<(Attempt, Outcome)>,
    /// Of each end whether it was the last attempt.
    last: Vec<bool>,
    text: HashMap<u64, Vec<u8>>,
    /// Jobs that are to be killed by their worker.
    to_kill: HashSet<u64>,
    /// Bytes for the input of every job.
    input: Vec<u8>,
}

/// The handler of one worker.
struct TestHandler<'a> {
    test: &'a PoolTest,
    index: usize,
    /// The number of input bytes that each job has.
    written: HashMap<u64, usize>,
}

impl PoolTest {
    fn new(config: SchedulerOptions, jobs: impl IntoIterator<Item = Command>) -> Self {
        Self {
            pool: JobPool::new(config, Duration::from_secs(600)),
            queue: Mutex::new(jobs.into_iter().collect()),
            log: Mutex::default(),
            changed: Condvar::new(),
            idle_lock: Mutex::default(),
            idle_blocked: AtomicUsize::new(0),
            admission_limit: AtomicUsize::new(usize::MAX),
        }
    }

    /// Runs all jobs; `control` runs at the same time. If it panics, the jobs are killed.
    fn run(&self, control: impl FnOnce(&Self)) {
        struct End<'a>(&'a PoolTest);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.pool.kill();
                }
            }
        }
        // Before `control`, which may take the descriptors that a set needs.
        let sets: Vec<_> =
            (0..WORKERS).map(|_| ChildSet::new(ChildSetOptions::default()).expect("create set")).collect();
        std::thread::scope(|scope| {
            let workers: Vec<_> = sets
                .into_iter()
                .enumerate()
                .map(|(index, set)| scope.spawn(move || self.work(index, set)))
                .collect();
            let _end = End(self);
            control(self);
            for worker in workers {
                worker.join().expect("join worker");
            }
        });
    }

    fn work(&self, index: usize, mut set: ChildSet) {
        let mut handler = TestHandler { test: self, index, written: HashMap::new() };
        self.pool.run_worker(&mut set, index, WORKERS, &mut handler).expect("run worker");
    }

    fn note(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log.lock().expect("lock log"));
        self.changed.notify_all();
    }

    /// Waits until `enough` holds for the log.
    fn wait_until(&self, what: &str, enough: impl Fn(&Log) -> bool) {
        let mut log = self.log.lock().expect("lock log");
        while !enough(&log) {
            let left = patience().saturating_duration_since(Instant::now());
            let (next, late) = self.changed.wait_timeout(log, left).expect("wait for child");
            log = next;
            assert!(!late.timed_out() || enough(&log), "not in time: {what}: {log:?}");
        }
    }

    /// Fails if the log matches `bad` within 100 ms.
    fn assert_never(&self, what: &str, bad: impl Fn(&Log) -> bool) {
        let end = Instant::now() + Duration::from_millis(100);
        let mut log = self.log.lock().expect("lock log");
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            assert!(!bad(&log), "{what}: {log:?}");
            log = self.changed.wait_timeout(log, left).expect("wait for child").0;
        }
    }

    /// Returns how many jobs have started, and how many have finished.
    fn counts(&self) -> (usize, usize) {
        let log = self.log.lock().expect("lock log");
        (log.starts.len(), log.ends.len())
    }

    /// Has the workers kill these jobs.
    fn end(&self, jobs: impl IntoIterator<Item = u64>) {
        self.note(|log| log.to_kill.extend(jobs));
        self.pool.wake();
    }

    fn end_running(&self) {
        let running: Vec<u64> = self.log.lock().expect("lock log").running.keys().copied().collect();
        self.end(running);
    }
}

impl TestHandler<'_> {
    /// Writes what there is room for.
    fn feed(&mut self, start: Attempt, id: ChildId, outputs: &mut ChildControl<'_>) {
        let input = self.test.log.lock().expect("lock log").input.clone();
        if input.is_empty() {
            return;
        }
        let written = self.written.entry(start.job).or_default();
        loop {
            match outputs.write(id, &input[*written..]).expect("write to stdin") {
                0 => break,
                count => *written += count,
            }
        }
        if *written == input.len() {
            outputs.close_stdin(id).expect("close stdin");
        }
    }
}

impl JobSource for TestHandler<'_> {
    type Job = Command;

    fn next_job(&mut self) -> NextJob<Command> {
        self.test.queue.lock().expect("lock queue").pop_front().map_or(NextJob::Exhausted, NextJob::Ready)
    }

    fn admit(&mut self, _start: Attempt, running: u64) -> bool {
        (running as usize) < self.test.admission_limit.load(Ordering::SeqCst)
    }
}

impl JobHandler for TestHandler<'_> {
    fn prepare(&mut self, _start: Attempt, job: &Command) -> Result<SpawnRequest, JobResult> {
        Ok(SpawnRequest::new(job.clone()))
    }

    fn started(&mut self, start: Attempt, _job: &Command, id: ChildId, outputs: &mut ChildControl<'_>) {
        let index = self.index;
        self.test.note(|log| {
            log.starts.push((start, Instant::now()));
            log.running.insert(start.job, (index, id));
            log.peak = log.peak.max(log.running.len());
        });
        self.feed(start, id, outputs);
    }

    fn event(
        &mut self,
        start: Attempt,
        _job: &Command,
        event: Event,
        outputs: &mut ChildControl<'_>,
    ) -> Option<Termination> {
        match event {
            Event::Output { chunk, .. } => {
                self.test.note(|log| log.text.entry(start.job).or_default().extend_from_slice(&chunk));
            }
            Event::Writable { child: id, .. } => self.feed(start, id, outputs),
            _ => (),
        }
        None
    }

    fn finished(&mut self, start: Attempt, _job: &Command, outcome: Outcome) -> JobResult {
        let last = self.test.pool.is_last_attempt(start);
        self.test.note(|log| {
            log.running.remove(&start.job);
            // Another attempt is not meant.
            log.to_kill.remove(&start.job);
            log.ends.push((start, outcome));
            log.last.push(last);
        });
        if outcome.exit.status.success() { JobResult::Success } else { JobResult::Failure }
    }

    fn spawn_failed(&mut self, start: Attempt, job: &Command, error: Error) -> JobResult {
        panic!("{start:?} {job:?}: {error}");
    }

    fn idle(&mut self, outputs: &mut ChildControl<'_>) {
        self.test.idle_blocked.fetch_add(1, Ordering::SeqCst);
        drop(self.test.idle_lock.lock().expect("lock idle"));
        self.test.idle_blocked.fetch_sub(1, Ordering::SeqCst);
        let log = self.test.log.lock().expect("lock log");
        for (index, id) in log.to_kill.iter().filter_map(|job| log.running.get(job)) {
            if *index == self.index {
                outputs.kill(*id, Termination::IMMEDIATE).expect("kill child");
            }
        }
    }
}

fn max_running(limit: usize) -> SchedulerOptions {
    SchedulerOptions::new().max_running(limit)
}

#[test]
fn run_returns_the_handlers_of_all_threads() {
    let jobs = (0..40).map(|_| quiet_child("exit 0"));
    let test = PoolTest::new(SchedulerOptions::new().max_running(4), jobs);
    let make_handler = |index| TestHandler { test: &test, index, written: HashMap::new() };
    let handlers = test.pool.run(3, &ChildSetOptions::new(), make_handler).expect("run jobs");
    assert_eq!(handlers.iter().map(|handler| handler.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(test.pool.counts().succeeded, 40);
}

#[test]
fn set_with_children_is_refused_and_they_keep_running() {
    let test = PoolTest::new(max_running(4), (0..3).map(|_| test_child("exit 0")));
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let id = set.spawn(&quiet_child(LONG), minder::SpawnOptions::new()).expect("spawn test child");
    let mut handler = TestHandler { test: &test, index: 0, written: HashMap::new() };
    let error = test.pool.run_worker(&mut set, 0, 1, &mut handler).expect_err("refused");
    let expected = "failed to run jobs on the set: it has children already; pass a set without children";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, expected));
    assert!(!test.pool.is_cancelled() && set.pid(id).is_ok());
    // The same loop may run with another set.
    set.kill_all(Termination::IMMEDIATE).expect("kill child");
    set.wait_all(Some(patience() - Instant::now()), drop).expect("wait for child");
    test.pool.run_worker(&mut set, 0, 1, &mut handler).expect("run worker");
    assert_eq!(test.counts(), (3, 3));
}

#[test]
fn second_run_of_a_pool_is_an_error() {
    let test = PoolTest::new(max_running(2), (0..4).map(|_| test_child("exit 0")));
    test.run(|_| ());
    test.queue.lock().expect("lock queue").push_back(test_child("exit 0"));
    let handler = |index| TestHandler { test: &test, index, written: HashMap::new() };
    let error = test.pool.run(WORKERS, &ChildSetOptions::default(), handler).map(drop).expect_err("refused");
    let expected = "failed to run the jobs of the pool: a pool runs once; make another one";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, expected));
    assert_eq!((test.counts(), test.pool.is_cancelled()), ((4, 4), false));
}

/// A source of costs, which answers `Pending` between them.
struct Costs {
    left: VecDeque<u64>,
    is_pending: bool,
    wake: Box<dyn Fn() + Send>,
    started: Vec<u64>,
}

impl JobSource for Costs {
    type Job = u64;

    fn next_job(&mut self) -> NextJob<u64> {
        self.is_pending = !self.is_pending;
        if self.is_pending {
            (self.wake)();
            return NextJob::Pending;
        }
        self.left.pop_front().map_or(NextJob::Exhausted, NextJob::Ready)
    }

    fn cost(&self, job: &u64) -> u64 {
        *job
    }
}

impl JobHandler for Costs {
    fn prepare(&mut self, _: Attempt, job: &u64) -> Result<SpawnRequest, JobResult> {
        self.started.push(*job);
        Err(JobResult::Success)
    }
    fn finished(&mut self, _: Attempt, _: &u64, _: Outcome) -> JobResult {
        JobResult::Success
    }
    fn spawn_failed(&mut self, _: Attempt, _: &u64, _: Error) -> JobResult {
        JobResult::PermanentFailure
    }
}

#[test]
fn jobs_start_in_the_order_of_the_configuration() {
    let costs = [4, 1, 6, 3, 5, 2];
    let started = |order, seed| {
        let config = SchedulerOptions::new().order(order).seed(seed);
        let pool = Arc::new(JobPool::new(config, Duration::from_secs(600)));
        let woken = Arc::clone(&pool);
        let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
        let wake = Box::new(move || woken.wake());
        let mut handler = Costs { left: costs.into(), is_pending: false, wake, started: Vec::new() };
        pool.run_worker(&mut set, 0, 1, &mut handler).expect("run worker");
        handler.started
    };
    assert_eq!(started(QueueOrder::Fifo, 0), costs);
    assert_eq!(started(QueueOrder::ShortestFirst, 0), [1, 2, 3, 4, 5, 6]);
    assert_eq!(started(QueueOrder::LongestFirst, 0), [6, 5, 4, 3, 2, 1]);
    let random = started(QueueOrder::Random, 7);
    assert_eq!(random, started(QueueOrder::Random, 7));
    assert!((0..9).any(|seed| started(QueueOrder::Random, seed) != random) && random != costs);
}

#[test]
fn run_ends_with_the_error_of_a_set() {
    let test = PoolTest::new(SchedulerOptions::new().max_running(4), [quiet_child(LONG)]);
    let make_handler = |index| TestHandler { test: &test, index, written: HashMap::new() };
    let foreign = crate::support::foreign_backend();
    let error = test.pool.run(2, &ChildSetOptions::new().backend(Some(foreign)), make_handler);
    assert_eq!(error.err().expect("no set can be made").kind(), minder::ErrorKind::Unsupported);
}
