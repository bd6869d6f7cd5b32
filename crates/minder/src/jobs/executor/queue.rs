//! What the threads of an executor share: the scheduler, the tasks that wait, and where tasks come from.
//!
//! # Direct tasks
//! If there is no delay, retry policy, halt policy or dependency, the scheduler has nothing to decide, and a
//! thread takes the next task of the source itself. While several threads take tiny tasks, all except for
//! one step aside, since a lock that moves between processors costs more than the task. One of those that
//! stepped aside looks every [`STANDBY_WAIT`] whether tasks are still tiny.
//!
//! # Locks
//! `state` is locked while the source is asked for its next task, so that tasks are numbered in the order
//! in which it returns them. Results have a separate lock: a source that blocks delays no finisher. No
//! lock is held while a task is processed, while its result waits for room, or while a thread is started.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::super::config::SchedulerConfig;
use super::super::scheduler::{Attempt, JobResult, NextAction, Scheduler};
use super::pace::{TaskPace, is_tiny};
use super::panic::TaskPanic;
use super::results::Results;
use super::summary::Summary;
use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use super::task::Task;

/// How long an idle thread sleeps at most. Every reason to wake it earlier wakes it.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// How often a thread that stepped aside looks whether it is needed. While tasks are tiny, this costs a
/// fiftieth of a processor.
const STANDBY_WAIT: Duration = Duration::from_micros(100);

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
    /// Whether threads take the tasks of the source without the scheduler.
    is_direct: bool,
    started: Instant,
}

#[derive(Debug)]
struct State<I, T> {
    /// A job is the index of its task in `waiting`.
    scheduler: Scheduler<usize>,
    waiting: Tasks<T>,
    /// `None` after its end.
    source: Option<I>,
    /// The first panic of the source, of a cost, or of an output that is dropped before a retry.
    panic: Option<TaskPanic>,
    /// How many direct tasks were taken, and how many of them succeeded.
    direct_taken: u64,
    direct_succeeded: u64,
    threads: usize,
    threads_max: usize,
    /// How many threads have been started.
    threads_started: usize,
    idle: usize,
    /// Whether one of the idle threads is the one that looks whether it is needed.
    has_standby: bool,
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

/// What one thread knows of its tasks.
#[derive(Debug)]
pub(super) struct Worker {
    /// The task that succeeded last, until that is recorded.
    succeeded: Option<Start>,
    pace: TaskPace,
}

impl Worker {
    pub(super) fn new() -> Self {
        Self { succeeded: None, pace: TaskPace::new() }
    }
}

/// How a task was started.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    Scheduled(Attempt),
    Direct,
}

/// What a thread does next.
#[derive(Debug)]
pub(super) enum Next<T> {
    /// Process this task.
    Process(Start, T, ExtraThread),
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
                panic: None,
                direct_taken: 0,
                direct_succeeded: 0,
                threads: 0,
                threads_max: config.max_running.max(1),
                threads_started: 0,
                idle: 0,
                has_standby: false,
                fault_threads,
            }),
            changed: Condvar::new(),
            results: Results::new(),
            is_stopped: AtomicBool::new(false),
            is_timed,
            is_direct: !is_timed && config.halt.is_none(),
            started: Instant::now(),
        }
    }

    /// Adds a task that starts after the tasks with these numbers. Returns its number.
    pub(super) fn submit(&self, task: T, after: &[u64]) -> u64 {
        let cost = catch_unwind(AssertUnwindSafe(|| task.cost()));
        let mut state = self.state.lock();
        let cost = cost.unwrap_or_else(|payload| {
            state.note_panic(payload);
            0
        });
        let index = state.waiting.insert(task);
        state.scheduler.submit(index, after, cost)
    }

    /// Adds all tasks of `source`, up to its panic.
    pub(super) fn submit_all(&self, source: I) {
        self.state.lock().source = Some(source);
        loop {
            let Some(task) = self.state.lock().pull() else { return };
            self.submit(task, &[]);
        }
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

    /// Records the task that this thread finished, and returns what the thread does next. Blocks until there
    /// is something to do.
    pub(super) fn next(&self, worker: &mut Worker) -> Next<T> {
        let mut state = self.state.lock();
        worker.pace.note(state.direct_taken);
        match worker.succeeded.take() {
            Some(Start::Scheduled(attempt)) => self.finish(&mut state, attempt, 0, JobResult::Success),
            Some(Start::Direct) => state.direct_succeeded += 1,
            None => (),
        }
        loop {
            if self.is_stopped.load(Ordering::Relaxed) {
                state.scheduler.halt();
            }
            if self.is_direct && state.has_direct_task() {
                if worker.pace.is_crowded() && state.threads - state.idle > 1 {
                    state = self.step_aside(state);
                    worker.pace.restart(state.direct_taken);
                    continue;
                }
                let Some(task) = self.pull(&mut state) else { continue };
                state.direct_taken += 1;
                return Next::Process(Start::Direct, task, state.extra_thread());
            }
            let wait = match state.scheduler.next(self.now()) {
                NextAction::Start(attempt, index) => {
                    let task = state.waiting.remove(index);
                    return Next::Process(Start::Scheduled(attempt), task, state.extra_thread());
                }
                NextAction::Finished => {
                    self.end_thread(state);
                    return Next::End;
                }
                NextAction::Empty if state.source.is_some() => {
                    if let Some(task) = self.pull(&mut state) {
                        let index = state.waiting.insert(task);
                        state.scheduler.submit(index, &[], 0);
                    }
                    continue;
                }
                NextAction::Later(at) => at.saturating_duration_since(Instant::now()).min(IDLE_WAIT_MAX),
                NextAction::Empty | NextAction::Full | NextAction::Paused => IDLE_WAIT_MAX,
            };
            state.idle += 1;
            state = self.changed.wait_timeout(state, wait);
            state.idle -= 1;
        }
    }

    /// Blocks until a thread beside the present ones may be useful.
    fn step_aside<'a>(&'a self, mut state: MutexGuard<'a, State<I, T>>) -> MutexGuard<'a, State<I, T>> {
        state.idle += 1;
        if state.has_standby {
            state = self.changed.wait_timeout(state, IDLE_WAIT_MAX);
            state.idle -= 1;
            return state;
        }
        state.has_standby = true;
        loop {
            let taken = state.direct_taken;
            let since = Instant::now();
            state = self.changed.wait_timeout(state, STANDBY_WAIT);
            let has_ended = !state.has_direct_task() || self.is_stopped.load(Ordering::Relaxed);
            if has_ended || !is_tiny(state.direct_taken - taken, since.elapsed()) {
                break;
            }
        }
        state.has_standby = false;
        state.idle -= 1;
        // All are needed, or all end.
        self.wake_idle(&state);
        state
    }

    fn wake_idle(&self, state: &State<I, T>) {
        if state.idle > 0 {
            self.changed.notify_all();
        }
    }

    /// Asks the source for its next task.
    fn pull(&self, state: &mut State<I, T>) -> Option<T> {
        let task = state.pull();
        if task.is_none() {
            self.wake_idle(state);
        }
        task
    }

    /// Processes a task without a lock, and delivers its result unless it is retried. A success is recorded
    /// by [`next`](Self::next).
    pub(super) fn process(&self, worker: &mut Worker, start: Start, mut task: T) {
        let processed = catch_unwind(AssertUnwindSafe(|| {
            let output = task.process();
            let result = task.result(&output);
            (output, result)
        }));
        let (output, result) = match processed {
            Ok((output, JobResult::Success)) => {
                // Delivered first: the finisher does not wait for the source, which `next` may ask.
                self.results.send((task, Ok(output)));
                worker.succeeded = Some(start);
                return;
            }
            Ok((output, result)) => (Ok(output), result),
            Err(payload) => (Err(TaskPanic::new(payload)), JobResult::PermanentFailure),
        };
        let mut state = self.state.lock();
        let attempt = match start {
            Start::Scheduled(attempt) => attempt,
            Start::Direct => state.scheduler.submit_and_start(self.now()),
        };
        let runs_again = match result {
            JobResult::Requeue => !state.scheduler.is_halted(),
            JobResult::Failure => !state.scheduler.is_last_attempt(attempt),
            _ => false,
        };
        if runs_again {
            let index = state.waiting.insert(task);
            self.finish(&mut state, attempt, index, result);
            drop(state);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(output))) {
                self.state.lock().note_panic(payload);
            }
        } else {
            self.finish(&mut state, attempt, 0, result);
            drop(state);
            self.results.send((task, output));
        }
    }

    fn finish(&self, state: &mut State<I, T>, attempt: Attempt, index: usize, result: JobResult) {
        // Threads cannot be killed, so a policy that kills what runs only starts no more. Idle threads may
        // find a dependent or a retry now, or have to end.
        let _ = state.scheduler.finish(attempt, index, result, self.now());
        self.wake_idle(state);
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
        let mut state = self.state.into_inner();
        state.end_source();
        let mut counts = state.scheduler.counts();
        counts.submitted += state.direct_succeeded;
        counts.succeeded += state.direct_succeeded;
        Summary {
            counts,
            not_run: state.waiting.places.into_iter().flatten().collect(),
            is_stopped,
            halted_by: state.scheduler.halted_by(),
            threads: state.threads_started,
            first_panic: state.panic,
        }
    }

    /// Returns the time if a decision depends on it. Reading the clock is a good part of the cost of a
    /// small task.
    fn now(&self) -> Instant {
        if self.is_timed { Instant::now() } else { self.started }
    }
}

impl<I: Iterator<Item = T>, T: Task> State<I, T> {
    /// Returns whether the next task may come from the source, without the scheduler.
    fn has_direct_task(&self) -> bool {
        self.source.is_some() && !self.scheduler.has_waiting() && !self.scheduler.is_halted()
    }

    /// Returns whether one more thread may find a task.
    fn has_more(&mut self) -> bool {
        if self.scheduler.has_waiting() {
            return true;
        }
        let Some(source) = &self.source else { return false };
        match catch_unwind(AssertUnwindSafe(|| source.size_hint())) {
            Ok((_, most)) => most != Some(0),
            Err(payload) => {
                self.note_panic(payload);
                self.end_source();
                false
            }
        }
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
            Err(payload) => self.note_panic(payload),
        }
        self.end_source();
        None
    }

    /// Asks the source for nothing more.
    fn end_source(&mut self) {
        let source = self.source.take();
        self.scheduler.close();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(source))) {
            self.note_panic(payload);
        }
    }

    fn note_panic(&mut self, payload: Box<dyn Any + Send>) {
        self.panic.get_or_insert(TaskPanic::new(payload));
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
        let mut worker = Worker::new();
        while let Next::Process(start_of, mut task, extra_thread) = queue.next(&mut worker) {
            if extra_thread == ExtraThread::Start {
                start(queue);
            }
            if let Start::Scheduled(attempt) = start_of {
                task.failures = task.failures.saturating_sub(usize::from(attempt.attempt > 1));
            }
            queue.process(&mut worker, start_of, task);
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
