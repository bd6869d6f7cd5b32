//! What the threads of an executor share: the scheduler, the tasks that wait, and where tasks come from.
//!
//! # Locks
//! `state` is locked while the source is asked for its next task, so that tasks are numbered in the order
//! in which it returns them. Results have a separate lock: a source that blocks delays no finisher. No
//! lock is held while a task is processed, while its result waits for room, or while a thread is started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::super::config::SchedulerConfig;
use super::super::scheduler::{Attempt, JobResult, NextAction, Scheduler};
use super::panic::TaskPanic;
use super::results::Results;
use super::summary::Summary;
use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use super::task::Task;

/// How long an idle thread sleeps at most. Every reason to wake it earlier wakes it.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// A finished task for the finisher.
pub(super) type Finished<T> = (T, Result<<T as Task>::Output, TaskPanic>);

/// The tasks of one run.
pub(super) struct TaskQueue<I, T: Task> {
    state: Mutex<State<I, T>>,
    /// Notified when an idle thread may find a task, or has to end.
    changed: Condvar,
    pub(super) results: Results<Finished<T>>,
    /// Whether the finisher has stopped the run. Read by each thread before it takes a task.
    is_stopped: AtomicBool,
    /// Whether a decision depends on the time: there are delays.
    is_timed: bool,
    started: Instant,
}

#[derive(Debug)]
struct State<I, T> {
    /// A job is the index of its task in `waiting`.
    scheduler: Scheduler<usize>,
    waiting: Tasks<T>,
    /// `None` after its end.
    source: Option<I>,
    source_panic: Option<TaskPanic>,
    threads: usize,
    threads_max: usize,
    /// How many threads have been started.
    threads_started: usize,
    idle: usize,
    /// How many threads can be started. For tests.
    fault_threads: Option<usize>,
}

/// The tasks that wait, at indexes that the scheduler knows.
#[derive(Debug)]
struct Tasks<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Tasks<T> {
    fn insert(&mut self, task: T) -> usize {
        if let Some(index) = self.free.pop() {
            self.places[index] = Some(task);
            return index;
        }
        self.places.push(Some(task));
        self.places.len() - 1
    }

    fn remove(&mut self, index: usize) -> T {
        self.free.push(index);
        self.places[index].take().expect("the scheduler starts a job once")
    }
}

/// What a thread does next.
#[derive(Debug)]
pub(super) enum Next<T> {
    /// Process this task.
    Process(Attempt, T, ExtraThread),
    /// No more tasks will start, and this thread no longer counts.
    End,
}

/// Whether the thread that took a task has to start another thread first. That one already counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtraThread {
    Start,
    No,
}

impl<T: Task, I: Iterator<Item = T>> TaskQueue<I, T> {
    /// Creates a queue of the tasks of `source`.
    pub(super) fn new(config: &SchedulerConfig, source: Option<I>, fault_threads: Option<usize>) -> Self {
        let is_timed = !config.delay.is_zero() || config.retry.max_attempts > 1;
        let mut scheduler = Scheduler::new(config.clone());
        if source.is_none() {
            scheduler.close();
        }
        Self {
            state: Mutex::new(State {
                scheduler,
                waiting: Tasks { places: Vec::new(), free: Vec::new() },
                source,
                source_panic: None,
                threads: 0,
                threads_max: config.max_running.max(1),
                threads_started: 0,
                idle: 0,
                fault_threads,
            }),
            changed: Condvar::new(),
            results: Results::new(),
            is_stopped: AtomicBool::new(false),
            is_timed,
            started: Instant::now(),
        }
    }

    /// Adds a task that starts after the tasks with these numbers. Returns its number.
    pub(super) fn submit(&self, task: T, after: &[u64]) -> u64 {
        let mut state = self.state.lock();
        let cost = task.cost();
        let index = state.waiting.insert(task);
        state.scheduler.submit(index, after, cost)
    }

    /// Counts a thread that is about to be started. Returns whether one may be useful.
    pub(super) fn add_thread(&self) -> bool {
        let mut state = self.state.lock();
        let is_useful = state.has_more();
        if is_useful {
            state.count_thread();
        }
        is_useful
    }

    /// Counts the caller's thread, which takes tasks alone.
    pub(super) fn add_caller(&self) {
        let mut state = self.state.lock();
        state.threads = 1;
        state.threads_max = 1;
    }

    /// Returns whether the start of the thread that was counted last has to fail. For tests.
    pub(super) fn has_start_fault(&self) -> bool {
        let state = self.state.lock();
        state.fault_threads.is_some_and(|threads| state.threads_started > threads)
    }

    /// Notes that the thread that was counted last could not be started. No more are started.
    pub(super) fn thread_failed(&self) {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.threads_started -= 1;
        state.threads_max = state.threads;
    }

    /// Records that the task of `succeeded` is done, and returns what the thread does next. Blocks until
    /// there is something to do.
    pub(super) fn next(&self, succeeded: Option<Attempt>) -> Next<T> {
        let mut state = self.state.lock();
        if let Some(attempt) = succeeded {
            self.finish(&mut state, attempt, 0, JobResult::Success);
        }
        loop {
            if self.is_stopped.load(Ordering::Relaxed) {
                state.scheduler.halt();
            }
            let wait = match state.scheduler.next(self.now()) {
                NextAction::Start(attempt, index) => {
                    let task = state.waiting.remove(index);
                    return Next::Process(attempt, task, state.extra_thread());
                }
                NextAction::Finished => {
                    self.end_thread(state);
                    return Next::End;
                }
                NextAction::Empty if state.source.is_some() => {
                    let Some(task) = state.pull() else { continue };
                    if self.is_timed {
                        let index = state.waiting.insert(task);
                        state.scheduler.submit(index, &[], 0);
                        continue;
                    }
                    let attempt = state.scheduler.submit_and_start(self.now());
                    return Next::Process(attempt, task, state.extra_thread());
                }
                NextAction::Later(at) => at.saturating_duration_since(Instant::now()).min(IDLE_WAIT_MAX),
                NextAction::Empty | NextAction::Full | NextAction::Paused => IDLE_WAIT_MAX,
            };
            state.idle += 1;
            state = self.changed.wait_timeout(state, wait);
            state.idle -= 1;
        }
    }

    /// Processes a task without a lock, and delivers its result unless it is retried. Returns the attempt
    /// if [`next`](Self::next) still has to record its success.
    pub(super) fn process(&self, attempt: Attempt, mut task: T) -> Option<Attempt> {
        let processed = catch_unwind(AssertUnwindSafe(|| {
            let output = task.process();
            let result = task.result(&output);
            (output, result)
        }));
        let (output, result) = match processed {
            Ok((output, JobResult::Success)) => {
                // Delivered first: the finisher does not wait for the source, which `next` may ask.
                self.results.send((task, Ok(output)));
                return Some(attempt);
            }
            Ok((output, result)) => (Ok(output), result),
            Err(payload) => (Err(TaskPanic::new(payload)), JobResult::PermanentFailure),
        };
        let mut state = self.state.lock();
        let runs_again = match result {
            JobResult::Requeue => !state.scheduler.is_halted(),
            JobResult::Failure => !state.scheduler.is_last_attempt(attempt),
            _ => false,
        };
        if runs_again {
            let index = state.waiting.insert(task);
            self.finish(&mut state, attempt, index, result);
        } else {
            self.finish(&mut state, attempt, 0, result);
            drop(state);
            self.results.send((task, output));
        }
        None
    }

    fn finish(&self, state: &mut State<I, T>, attempt: Attempt, index: usize, result: JobResult) {
        // Threads cannot be killed, so a policy that kills what runs only starts no more. Idle threads may
        // find a dependent or a retry now, or have to end.
        let _ = state.scheduler.finish(attempt, index, result, self.now());
        if state.idle > 0 {
            self.changed.notify_all();
        }
    }

    fn end_thread(&self, mut state: MutexGuard<'_, State<I, T>>) {
        state.threads -= 1;
        let is_last = state.threads == 0;
        drop(state);
        if is_last {
            self.results.close();
        }
    }

    /// Starts no more tasks.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // With the lock, so that no thread is between its look at the flag and its wait. A source that
        // blocks holds the lock, so this waits for it.
        let has_idle = self.state.lock().idle > 0;
        if has_idle {
            self.changed.notify_all();
        }
    }

    /// Returns what came of the run. No thread works on it any more.
    pub(super) fn into_summary(self) -> Summary<T> {
        let is_stopped = self.is_stopped.load(Ordering::Relaxed);
        let state = self.state.into_inner();
        Summary {
            counts: state.scheduler.counts(),
            not_run: state.waiting.places.into_iter().flatten().collect(),
            is_stopped,
            halted_by: state.scheduler.halted_by(),
            threads: state.threads_started,
            first_panic: state.source_panic,
        }
    }

    /// Returns the time if a decision depends on it. Reading the clock is a good part of the cost of a
    /// small task.
    fn now(&self) -> Instant {
        if self.is_timed { Instant::now() } else { self.started }
    }
}

impl<I: Iterator<Item = T>, T: Task> State<I, T> {
    /// Returns whether one more thread may find a task.
    fn has_more(&self) -> bool {
        self.scheduler.has_waiting()
            || self.source.as_ref().is_some_and(|source| source.size_hint().1 != Some(0))
    }

    fn count_thread(&mut self) {
        self.threads += 1;
        self.threads_started += 1;
    }

    /// Counts another thread if all are busy and there may be a task for it.
    fn extra_thread(&mut self) -> ExtraThread {
        if self.threads >= self.threads_max || self.idle > 0 || !self.has_more() {
            return ExtraThread::No;
        }
        self.count_thread();
        ExtraThread::Start
    }

    /// Asks the source for its next task.
    fn pull(&mut self) -> Option<T> {
        let source = self.source.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| source.next())) {
            Ok(Some(task)) => return Some(task),
            Ok(None) => (),
            Err(payload) => self.source_panic = Some(TaskPanic::new(payload)),
        }
        self.source = None;
        self.scheduler.close();
        None
    }
}

/// The threads of a run, in every interleaving: each task is processed and delivered once, no wake-up is
/// lost, and the run ends.
#[cfg(all(loom, test))]
mod model {
    use std::collections::VecDeque;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::jobs::config::RetryPolicy;

    struct Numbered {
        number: usize,
        failures: usize,
    }

    impl Task for Numbered {
        type Output = usize;

        fn process(&mut self) -> usize {
            self.number
        }

        fn result(&self, _: &usize) -> JobResult {
            if self.failures > 0 { JobResult::Failure } else { JobResult::Success }
        }
    }

    type Source = std::vec::IntoIter<Numbered>;
    type Queue = TaskQueue<Source, Numbered>;

    fn tasks(failures: &[usize]) -> Vec<Numbered> {
        failures.iter().enumerate().map(|(number, &failures)| Numbered { number, failures }).collect()
    }

    /// What a thread of an executor does.
    fn work(queue: &Arc<Queue>) {
        let mut succeeded = None;
        while let Next::Process(attempt, mut task, extra_thread) = queue.next(succeeded) {
            if extra_thread == ExtraThread::Start {
                start(queue);
            }
            task.failures = task.failures.saturating_sub(usize::from(attempt.attempt > 1));
            succeeded = queue.process(attempt, task);
        }
    }

    fn start(queue: &Arc<Queue>) {
        let queue = Arc::clone(queue);
        thread::spawn(move || work(&queue));
    }

    /// Runs the queue, and returns the numbers of the tasks in the order of their delivery.
    fn run(queue: Queue, stop_after: usize) -> Vec<usize> {
        let queue = Arc::new(queue);
        assert!(queue.add_thread());
        start(&queue);
        let mut delivered = Vec::new();
        let mut batch = VecDeque::new();
        while queue.results.receive(&mut batch, false) {
            delivered.extend(batch.drain(..).map(|(_, output)| output.expect("no panic")));
            if delivered.len() >= stop_after {
                queue.stop();
            }
        }
        delivered
    }

    /// Runs a model of three threads. More preemptions of a run find nothing more, and take ten times as
    /// long.
    fn model(run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(run);
    }

    fn config() -> SchedulerConfig {
        SchedulerConfig::new().max_running(2)
    }

    #[test]
    fn each_task_of_a_source_is_delivered_once() {
        model(|| {
            let mut delivered =
                run(Queue::new(&config(), Some(tasks(&[0, 0, 0]).into_iter()), None), usize::MAX);
            delivered.sort_unstable();
            assert_eq!(delivered, [0, 1, 2]);
        });
    }

    #[test]
    fn failed_task_runs_again_and_is_delivered_once() {
        model(|| {
            let retry = RetryPolicy::new().max_attempts(2);
            let queue = Queue::new(&config().retry(retry), Some(tasks(&[1, 0]).into_iter()), None);
            let mut delivered = run(queue, usize::MAX);
            delivered.sort_unstable();
            assert_eq!(delivered, [0, 1]);
        });
    }

    #[test]
    fn dependent_starts_after_its_dependency_on_an_idle_thread() {
        model(|| {
            let queue = Queue::new(&config(), None, None);
            let mut first = 0;
            for (index, task) in tasks(&[0, 0, 0]).into_iter().enumerate() {
                let after = [first];
                let number = queue.submit(task, if index == 2 { &after } else { &[] });
                first = if index == 0 { number } else { first };
            }
            let delivered = run(queue, usize::MAX);
            let place = |number| delivered.iter().position(|&other| other == number);
            assert!(delivered.len() == 3 && place(0) < place(2));
        });
    }

    #[test]
    fn stop_ends_the_run_whatever_waits() {
        model(|| {
            let delivered = run(Queue::new(&config(), Some(tasks(&[0, 0, 0]).into_iter()), None), 1);
            assert!((1..=3).contains(&delivered.len()));
        });
    }
}
