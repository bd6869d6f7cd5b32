//! The state that the threads of an executor share: the scheduler, the tasks that wait, and the
//! source of tasks.
//!
//! # Direct tasks
//! If there is no delay, retry policy, halt policy or dependency, the scheduler has nothing to decide, and a
//! thread takes the next task of the source itself. While several threads take tiny tasks, all except for
//! one step aside, since a lock that moves between processors costs more than the task. One of those that
//! stepped aside looks every [`STANDBY_WAIT`] whether tasks are still tiny.
//!
//! # Locks
//! The source is asked for a task with the lock of the source alone. It may block for as long as it likes:
//! results are delivered and recorded, retries and dependents start, and the finisher may stop the run
//! meanwhile. No lock is held while a task is processed, while its result waits for room, or while a thread
//! is started. No thread takes the lock of the source while it holds `state`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::super::config::SchedulerOptions;
use super::super::scheduler::{Attempt, JobResult, NextAction, Scheduler};
use super::pace::{TaskPace, is_tiny};
use super::panic::{PanicStore, TaskPanic};
use super::results::Results;
use super::source::Source;
use super::summary::Summary;
use super::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use super::task::Task;

/// The longest time for which an idle thread sleeps. Every reason to wake it earlier wakes it.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);
/// The interval at which a thread that stepped aside looks whether it is needed. While tasks are
/// tiny, this costs a fiftieth of a processor.
const STANDBY_WAIT: Duration = Duration::from_micros(100);

/// A finished task for the finisher.
pub(super) type Finished<T> = (T, Result<<T as Task>::Output, TaskPanic>);

/// The tasks of one run.
pub(super) struct TaskQueue<I, T: Task> {
    state: Mutex<State<T>>,
    /// Notified when an idle thread may find a task, or has to end.
    changed: Condvar,
    source: Mutex<Source<I>>,
    pub(super) results: Results<Finished<T>>,
    /// The first panic of the source, of a cost, or of an output that is dropped before a retry.
    panic: PanicStore,
    /// `true` once the finisher has stopped the run. Read by each thread before it takes a task.
    is_stopped: AtomicBool,
    /// The number of direct tasks that were taken. Changed with the lock of the source.
    taken: AtomicU64,
    /// `true` if threads may take the tasks of the source without the scheduler.
    is_direct: bool,
    /// `true` if the scheduler may have a task even so: one that asked to run again. Each thread
    /// that adds one takes one next.
    has_scheduled: AtomicBool,
    /// `true` if there are fewer threads than there may be.
    may_grow: AtomicBool,
    /// `true` if a decision depends on the time: there are delays.
    is_timed: bool,
    /// `true` if the dependents of a task start only after [`release`](Self::release).
    is_graph: bool,
    started: Instant,
}

#[derive(Debug)]
struct State<T> {
    /// A job is the index of its task in `waiting`.
    scheduler: Scheduler<usize>,
    waiting: Tasks<T>,
    /// `true` if the source may have a task.
    is_open: bool,
    /// `true` if a thread asks the source for a task that the scheduler gets.
    is_pulling: bool,
    /// `true` if the source said, when it was asked last, that it may have more.
    source_has_more: bool,
    direct_succeeded: u64,
    threads: usize,
    threads_max: usize,
    /// The number of threads that have been started.
    threads_started: usize,
    /// `true` if one could not be started.
    lacks_threads: bool,
    idle: usize,
    /// `true` if one of the idle threads is the one that looks whether it is needed.
    has_standby: bool,
    /// The number of threads that can be started. For tests.
    fault_threads: Option<usize>,
}

impl<T> State<T> {
    fn submit(&mut self, task: T, cost: u64) -> u64 {
        let index = self.waiting.insert(task);
        self.scheduler.submit(index, cost)
    }
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

/// The state of one thread's tasks.
#[derive(Debug)]
pub(super) struct Worker {
    /// The scheduled task that succeeded last, until that is recorded.
    succeeded: Option<Attempt>,
    /// The number of direct tasks that succeeded.
    direct_succeeded: u64,
    pace: TaskPace,
}

impl Worker {
    pub(super) fn new() -> Self {
        Self { succeeded: None, direct_succeeded: 0, pace: TaskPace::new() }
    }
}

/// The way in which a task was started.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    Scheduled(Attempt),
    Direct,
}

/// The next action of a thread.
#[derive(Debug)]
pub(super) enum Next<T> {
    /// Process this task.
    Process(Start, T, ExtraThread),
    /// No more tasks will start, and this thread no longer counts.
    End,
}

/// The order to the thread that took a task to start another thread first, or not. That one already
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtraThread {
    Start,
    No,
}

impl<T: Task, I: Iterator<Item = T>> TaskQueue<I, T> {
    /// Creates a queue of the tasks of `source`.
    pub(super) fn new(config: &SchedulerOptions, source: Option<I>, fault_threads: Option<usize>) -> Self {
        let is_timed =
            !config.delay.is_zero() || !config.start_interval.is_zero() || config.retry.max_attempts > 1;
        let is_open = source.is_some();
        let mut scheduler = Scheduler::new(config.clone());
        if !is_open {
            scheduler.close();
        }
        Self {
            state: Mutex::new(State {
                scheduler,
                waiting: Tasks { places: Vec::new(), free: Vec::new() },
                is_open,
                is_pulling: false,
                source_has_more: is_open,
                direct_succeeded: 0,
                threads: 0,
                threads_max: config.max_running.max(1),
                threads_started: 0,
                lacks_threads: false,
                idle: 0,
                has_standby: false,
                fault_threads,
            }),
            changed: Condvar::new(),
            source: Mutex::new(Source::new(source)),
            results: Results::new(),
            panic: PanicStore::new(),
            is_stopped: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            is_direct: is_open && !is_timed && config.halt.is_none(),
            has_scheduled: AtomicBool::new(false),
            may_grow: AtomicBool::new(true),
            is_timed,
            is_graph: false,
            started: Instant::now(),
        }
    }

    /// Adds a task that starts after the tasks with these numbers, which were returned before. Returns its
    /// number.
    pub(super) fn submit(&self, task: T, after: &[u64]) -> u64 {
        let cost = self.panic.catch(|| task.cost()).unwrap_or(0);
        let mut state = self.state.lock();
        if after.is_empty() {
            return state.submit(task, cost);
        }
        let index = state.waiting.insert(task);
        state.scheduler.submit_after(index, after, cost).expect("the numbers are those of tasks")
    }

    /// Starts the dependents of a task only after [`release`](Self::release).
    pub(super) fn hold_dependents(&mut self) {
        self.is_graph = true;
    }

    /// Lets the dependents of a task start: it was finished. Returns whether the caller has to start a thread
    /// for them.
    pub(super) fn release(&self, number: u64) -> ExtraThread {
        let mut state = self.state.lock();
        state.scheduler.release(number);
        self.wake_idle(&state);
        self.extra_thread(&mut state, false)
    }

    /// Adds all tasks of `source`, up to its panic.
    pub(super) fn submit_all(&self, source: I) {
        let mut source = Source::new(Some(source));
        while let Some(task) = source.pull(&self.panic) {
            self.submit(task, &[]);
        }
    }

    /// Notes that all tasks were submitted. Percentages of the halt policy refer to their number.
    pub(super) fn set_total(&self) {
        let scheduler = &mut self.state.lock().scheduler;
        scheduler.set_total(Some(scheduler.counts().submitted));
    }

    /// Counts the first thread, which is about to be started. Returns whether it is useful.
    ///
    /// A size hint may be wrong. If it says that there are no tasks, the source is asked for one.
    pub(super) fn add_thread(&self) -> bool {
        let mut source = self.source.lock();
        let source_has_more = source.has_more(&self.panic);
        let first = if source_has_more { None } else { source.pull(&self.panic) };
        drop(source);
        let mut state = self.state.lock();
        if let Some(task) = first {
            state.submit(task, 0);
            self.has_scheduled.store(true, Ordering::Relaxed);
        }
        let is_useful = source_has_more || state.scheduler.has_waiting();
        if is_useful {
            self.count_thread(&mut state);
        }
        is_useful
    }

    /// Counts the caller's thread, which takes tasks alone.
    pub(super) fn add_caller(&self) {
        let mut state = self.state.lock();
        state.threads = 1;
        state.threads_max = 1;
        self.may_grow.store(false, Ordering::Relaxed);
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
        state.lacks_threads = true;
        self.may_grow.store(false, Ordering::Relaxed);
    }

    /// Ends the run, since a thread panicked outside of its tasks.
    pub(super) fn thread_panicked(&self, payload: Box<dyn Any + Send>) {
        self.panic.note(payload);
        self.stop();
        self.end_thread(self.state.lock());
    }

    /// Records the task that this thread finished, and returns what the thread does next. Blocks until there
    /// is something to do.
    pub(super) fn next(&self, worker: &mut Worker) -> Next<T> {
        loop {
            if self.is_direct
                && !self.has_scheduled.load(Ordering::Relaxed)
                && let Some(next) = self.next_direct(worker)
            {
                return next;
            }
            if let Some(next) = self.next_scheduled(worker) {
                return next;
            }
        }
    }

    /// Takes a task of the source. Returns `None` if it has none, or the run was stopped.
    fn next_direct(&self, worker: &mut Worker) -> Option<Next<T>> {
        worker.pace.note(self.taken.load(Ordering::Relaxed));
        if worker.pace.is_crowded() {
            self.step_aside();
            worker.pace.restart(self.taken.load(Ordering::Relaxed));
        }
        let mut source = self.source.lock();
        if self.is_stopped.load(Ordering::Relaxed) {
            return None;
        }
        let Some(task) = source.pull(&self.panic) else {
            drop(source);
            self.close(&mut self.state.lock());
            return None;
        };
        self.taken.store(self.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let may_grow = self.may_grow.load(Ordering::Relaxed) && source.has_more(&self.panic);
        drop(source);
        if self.is_stopped.load(Ordering::Relaxed) {
            // It was stopped while the source was asked, so the task comes back.
            self.state.lock().submit(task, 0);
            return None;
        }
        let extra_thread =
            if may_grow { self.extra_thread(&mut self.state.lock(), true) } else { ExtraThread::No };
        Some(Next::Process(Start::Direct, task, extra_thread))
    }

    /// Takes a task from the scheduler, or ends the thread. Returns `None` if the source has a direct task.
    fn next_scheduled(&self, worker: &mut Worker) -> Option<Next<T>> {
        let mut state = self.state.lock();
        state.direct_succeeded += std::mem::take(&mut worker.direct_succeeded);
        if let Some(attempt) = worker.succeeded.take() {
            self.finish(&mut state, attempt, 0, JobResult::Success);
        }
        loop {
            if self.is_stopped.load(Ordering::Relaxed) {
                state.scheduler.halt();
            }
            let wait = match state.scheduler.next(self.now()) {
                NextAction::Start(attempt, index) => {
                    let task = state.waiting.remove(index);
                    let source_has_more = state.source_has_more;
                    let extra_thread = self.extra_thread(&mut state, source_has_more);
                    return Some(Next::Process(Start::Scheduled(attempt), task, extra_thread));
                }
                NextAction::Finished => {
                    self.end_thread(state);
                    return Some(Next::End);
                }
                NextAction::Empty if state.is_open && self.is_direct => {
                    self.has_scheduled.store(false, Ordering::Relaxed);
                    return None;
                }
                NextAction::Empty | NextAction::EmptyUntil(_) if state.is_open && !state.is_pulling => {
                    state = self.pull_scheduled(state);
                    continue;
                }
                // While another thread asks the source, a retry may be due.
                NextAction::Later(at) | NextAction::EmptyUntil(at) => {
                    at.saturating_duration_since(Instant::now()).min(IDLE_WAIT_MAX)
                }
                NextAction::Empty | NextAction::Full | NextAction::Paused => IDLE_WAIT_MAX,
            };
            state.idle += 1;
            state = self.changed.wait_timeout(state, wait);
            state.idle -= 1;
        }
    }

    /// Asks the source for a task and submits it. The other threads take what the scheduler has meanwhile.
    fn pull_scheduled<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        state.is_pulling = true;
        drop(state);
        let mut source = self.source.lock();
        let task = source.pull(&self.panic);
        let has_more = task.is_some() && source.has_more(&self.panic);
        drop(source);
        let mut state = self.state.lock();
        state.is_pulling = false;
        state.source_has_more = has_more;
        let Some(task) = task else {
            self.close(&mut state);
            return state;
        };
        state.submit(task, 0);
        if state.idle > 0 {
            // One of them asks the source next.
            self.changed.notify_one();
        }
        state
    }

    /// Notes that the source has no more tasks.
    fn close(&self, state: &mut State<T>) {
        state.is_open = false;
        state.source_has_more = false;
        state.scheduler.close();
        self.wake_idle(state);
    }

    /// Blocks until one more thread may be useful, unless no other one is left.
    fn step_aside(&self) {
        let mut state = self.state.lock();
        if state.threads - state.idle <= 1 || !self.has_direct_tasks(&state) {
            return;
        }
        state.idle += 1;
        if state.has_standby {
            state = self.changed.wait_timeout(state, IDLE_WAIT_MAX);
            state.idle -= 1;
            return;
        }
        state.has_standby = true;
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            let since = Instant::now();
            state = self.changed.wait_timeout(state, STANDBY_WAIT);
            let taken = self.taken.load(Ordering::Relaxed) - taken;
            if !self.has_direct_tasks(&state) || !is_tiny(taken, since.elapsed()) {
                break;
            }
        }
        state.has_standby = false;
        state.idle -= 1;
        // All are needed, or all end.
        self.wake_idle(&state);
    }

    fn has_direct_tasks(&self, state: &State<T>) -> bool {
        state.is_open && !state.scheduler.has_waiting() && !self.is_stopped.load(Ordering::Relaxed)
    }

    fn wake_idle(&self, state: &State<T>) {
        if state.idle > 0 {
            self.changed.notify_all();
        }
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
                if let Start::Scheduled(attempt) = start
                    && self.is_graph
                {
                    // 1. The scheduler knows the success. 2. The finisher gets it. 3. It is released.
                    let mut state = self.state.lock();
                    state.scheduler.finish_held(attempt, 0, self.now());
                    self.wake_idle(&state);
                    drop(state);
                    self.results.send((task, Ok(output)));
                    return;
                }
                self.results.send((task, Ok(output)));
                match start {
                    Start::Scheduled(attempt) => worker.succeeded = Some(attempt),
                    Start::Direct => worker.direct_succeeded += 1,
                }
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
            JobResult::Requeue => true,
            JobResult::Failure => !state.scheduler.is_last_attempt(attempt),
            _ => false,
        };
        if runs_again {
            // If the run was stopped, the scheduler drops the job, and its task comes back.
            let index = state.waiting.insert(task);
            self.has_scheduled.store(true, Ordering::Relaxed);
            self.finish(&mut state, attempt, index, result);
            drop(state);
            self.discard(output);
        } else {
            self.finish(&mut state, attempt, 0, result);
            drop(state);
            self.results.send((task, output));
        }
    }

    /// Drops an output. A panic of that is kept for the summary.
    pub(super) fn discard(&self, output: Result<T::Output, TaskPanic>) {
        let _ = self.panic.catch(|| drop(output));
    }

    fn finish(&self, state: &mut State<T>, attempt: Attempt, index: usize, result: JobResult) {
        // Threads cannot be killed, so a policy that kills what runs only starts no more. Idle threads may
        // find a dependent or a retry now, or have to end.
        let _ = state.scheduler.finish(attempt, index, result, self.now());
        self.wake_idle(state);
    }

    fn end_thread(&self, mut state: MutexGuard<'_, State<T>>) {
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
        // With the lock, so that no thread is between its look at the flag and its wait.
        self.wake_idle(&self.state.lock());
    }

    /// Returns what came of the run. No thread works on it any more.
    pub(super) fn into_summary(self) -> Summary<T> {
        let is_stopped = self.is_stopped.load(Ordering::Relaxed);
        self.source.into_inner().end(&self.panic);
        let state = self.state.into_inner();
        let mut counts = state.scheduler.counts();
        counts.submitted += state.direct_succeeded;
        counts.succeeded += state.direct_succeeded;
        Summary {
            counts,
            not_run: state.waiting.places.into_iter().flatten().collect(),
            not_finished: Vec::new(),
            is_stopped,
            halted_by: state.scheduler.halted_by(),
            threads: state.threads_started,
            lacks_threads: state.lacks_threads,
            first_panic: self.panic.into_inner(),
        }
    }

    /// Returns the time if a decision depends on it. Reading the clock is a good part of the cost of a
    /// small task.
    fn now(&self) -> Instant {
        if self.is_timed { Instant::now() } else { self.started }
    }

    fn count_thread(&self, state: &mut State<T>) {
        state.threads += 1;
        state.threads_started += 1;
        self.may_grow.store(state.threads < state.threads_max, Ordering::Relaxed);
    }

    /// Counts another thread if all are busy and there may be a task for it.
    fn extra_thread(&self, state: &mut State<T>, source_has_more: bool) -> ExtraThread {
        let is_useful = source_has_more || state.scheduler.has_waiting();
        if state.threads >= state.threads_max || state.idle > 0 || !is_useful {
            return ExtraThread::No;
        }
        self.count_thread(state);
        ExtraThread::Start
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

    /// Does the work of a thread of an executor.
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
            for (_, output) in batch.drain(..) {
                let number = output.expect("no panic");
                delivered.push(number);
                if queue.is_graph && queue.release(number as u64 + 1) == ExtraThread::Start {
                    start(&queue);
                }
            }
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

    fn config() -> SchedulerOptions {
        SchedulerOptions::new().max_running(2)
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
            let mut queue = Queue::new(&config(), None, None);
            queue.hold_dependents();
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
