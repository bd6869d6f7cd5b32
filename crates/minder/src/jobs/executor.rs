//! The driver over threads: items, a processor on any thread, and a finisher on the caller's.
//!
//! The threads take tasks from the scheduler themselves, and pull the items from the iterator when it has
//! none. A dispatching thread would need one more wake-up for each item.

mod sync;
mod task;
mod panic;
mod graph;
mod pace;
mod source;
mod results;
mod summary;
mod queue;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, Scope};

use self::graph::Graph;
use self::pace::ResultPace;
use self::queue::{ExtraThread, Finished, Next, TaskQueue, Worker};
use self::task::{Fallible, Item, Numbered};
use super::config::{QueueOrder, SchedulerOptions};

pub use self::{graph::GraphError, panic::TaskPanic, summary::Summary, task::Task};

/// Processes items on several threads, and finishes each on the caller's thread.
///
/// The *processor* runs for each item, on at most as many threads as the degree. The *finisher* runs for
/// each item as soon as its processor has ended: one at a time, in the order of completion, on the thread
/// that called `run`. It needs no locks, and can change what belongs to that thread.
///
/// ```
/// use minder::jobs::Executor;
/// use std::ops::ControlFlow;
///
/// let words = vec!["one", "three", "seventeen"]; // borrowed by the processor
/// let mut lengths = vec![0; words.len()]; // changed by the finisher, without a lock
/// let summary = Executor::new(2).run(
///     0..words.len(),
///     |index| words[*index].len(),
///     |index, length| {
///         lengths[index] = length.expect("no panic");
///         ControlFlow::Continue(())
///     },
/// );
/// assert_eq!(lengths, [3, 5, 9]);
/// assert_eq!(summary.counts.succeeded, 3);
/// ```
///
/// Items come from an iterator and are read when a thread is free. A million items need no memory for a
/// million: at most 4096 results wait for the finisher, and the threads wait while they do. The orders
/// that need to know all items read them first.
///
/// Items that take less than a microsecond are finished in batches, and up to 0.1 ms later. While items
/// take almost no time, one thread processes them alone, since several are slower; a second one joins it
/// at most 0.1 ms after the first long item.
///
/// Threads are started when an item waits and all of them are busy, and end before `run` returns. If
/// none can be started, the caller's thread does the work. The panic of a processor is a result: it ends
/// no other item, and the finisher gets it.
///
/// [`JobPool`](super::JobPool) runs children in the same manner, and needs no thread for each.
#[derive(Clone, Debug)]
#[must_use]
pub struct Executor {
    config: SchedulerOptions,
    is_serial: bool,
    /// The number of threads that can be started. For tests.
    fault_threads: Option<usize>,
}

impl Executor {
    /// Creates an executor with at most `degree` threads, at least one.
    /// [`std::thread::available_parallelism`] is a good degree for work that needs the processor.
    pub fn new(degree: usize) -> Self {
        Self::with_config(SchedulerOptions::new().max_running(degree))
    }

    /// Creates an executor that processes each item on the caller's thread, one after the other, and
    /// finishes it before the next one starts.
    ///
    /// ```
    /// use minder::jobs::Executor;
    /// use std::ops::ControlFlow;
    ///
    /// let caller = std::thread::current().id();
    /// let summary = Executor::serial().run(1..=3, |_| std::thread::current().id(), |_, thread| {
    ///     assert_eq!(thread.expect("no panic"), caller);
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!((summary.counts.succeeded, summary.threads), (3, 0));
    /// ```
    pub fn serial() -> Self {
        Self::new(1).on_caller(true)
    }

    /// Creates an executor with this degree, order, delay, retry policy and halt policy. A halt policy
    /// that kills running jobs only starts no more: a thread cannot be killed.
    ///
    /// ```
    /// use minder::jobs::{Executor, QueueOrder, SchedulerOptions};
    /// use std::ops::ControlFlow;
    ///
    /// let config = SchedulerOptions::new().order(QueueOrder::ShortestFirst); // and one at a time
    /// let mut order = Vec::new();
    /// let finisher = |milliseconds, _| {
    ///     order.push(milliseconds);
    ///     ControlFlow::Continue(())
    /// };
    /// Executor::with_config(config).run_by_cost([3, 1, 2], |milliseconds| *milliseconds, |_| (), finisher);
    /// assert_eq!(order, [1, 2, 3]);
    /// ```
    pub fn with_config(config: SchedulerOptions) -> Self {
        Self { config, is_serial: false, fault_threads: None }
    }

    /// Sets whether each item is processed on the caller's thread, as [`serial`](Self::serial) does. The
    /// degree does not matter then.
    ///
    /// ```
    /// use minder::jobs::Executor;
    /// use std::ops::ControlFlow;
    ///
    /// let is_debugged = true; // one step after the other, in one thread
    /// let executor = Executor::new(8).on_caller(is_debugged);
    /// let summary = executor.run(["a", "b"], |_| (), |_, _| ControlFlow::Continue(()));
    /// assert_eq!(summary.threads, 0);
    /// ```
    pub fn on_caller(mut self, yes: bool) -> Self {
        self.is_serial = yes;
        self
    }

    /// Makes the start of a thread fail after this number of them. For tests.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub fn fault_threads(mut self, threads: Option<usize>) -> Self {
        self.fault_threads = threads;
        self
    }

    /// Processes all items, and returns when each is finished. The order is the one of
    /// [`SchedulerOptions::order`]; all costs are equal.
    ///
    /// After the finisher has returned [`ControlFlow::Break`] no item starts, and the finisher is not called
    /// again. [`Summary::not_run`] has the items that were read and not run, and
    /// [`Summary::not_finished`] those that were processed until then, or ran.
    ///
    /// An item fails if its processor panics. With [`run_tasks`](Self::run_tasks), it decides that itself.
    ///
    /// The iterator is called by one thread at a time. It may block until the finisher provides the next
    /// item: results are finished, and items are retried, meanwhile. The run ends after that call has
    /// returned: after a stop it must not wait for an item that comes back to be dropped. Its
    /// size hint decides only how many threads are started: a wrong one loses no item.
    ///
    /// # Panics
    /// If the finisher or [`IntoIterator::into_iter`] panics; the running items end before. A panic of
    /// the processor or of the iterator does not panic here: see [`Summary::resume_first_panic`].
    pub fn run<I, T, R>(
        &self,
        items: I,
        processor: impl Fn(&mut T) -> R + Sync,
        finisher: impl FnMut(T, Result<R, TaskPanic>) -> ControlFlow<()>,
    ) -> Summary<T>
    where
        I: IntoIterator<Item = T, IntoIter: Send>,
        T: Send,
        R: Send,
    {
        self.run_by_cost(items, |_| 0, processor, finisher)
    }

    /// Runs as [`run`](Self::run), with a cost for each item, in any unit: the orders by cost start with
    /// the items that have the least or the greatest. An item whose cost panics costs 0, as with
    /// [`Task::cost`].
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_by_cost<I, T, R>(
        &self,
        items: I,
        cost: impl Fn(&T) -> u64 + Sync,
        processor: impl Fn(&mut T) -> R + Sync,
        mut finisher: impl FnMut(T, Result<R, TaskPanic>) -> ControlFlow<()>,
    ) -> Summary<T>
    where
        I: IntoIterator<Item = T, IntoIter: Send>,
        T: Send,
        R: Send,
    {
        let items = items.into_iter().map(|value| Item { value, processor: &processor, cost: &cost });
        self.run_tasks(items, |item, result| finisher(item.value, result)).map(|item| item.value)
    }

    /// Runs as [`run`](Self::run) with items that know how they are processed: see [`Task`].
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use minder::jobs::{Executor, JobResult, Task};
    /// use std::ops::ControlFlow;
    ///
    /// struct Parse(&'static str);
    ///
    /// impl Task for Parse {
    ///     type Output = Option<u32>;
    ///     fn process(&mut self) -> Option<u32> {
    ///         self.0.parse().ok()
    ///     }
    ///     fn result(&self, number: &Option<u32>) -> JobResult {
    ///         if number.is_some() { JobResult::Success } else { JobResult::PermanentFailure }
    ///     }
    /// }
    ///
    /// let texts = ["1", "x", "3"].map(Parse);
    /// let counts = Executor::new(2).run_tasks(texts, |_, _| ControlFlow::Continue(())).counts;
    /// assert_eq!((counts.succeeded, counts.failed), (2, 1));
    /// ```
    pub fn run_tasks<I, T>(
        &self,
        tasks: I,
        finisher: impl FnMut(T, Result<T::Output, TaskPanic>) -> ControlFlow<()>,
    ) -> Summary<T>
    where
        I: IntoIterator<Item = T, IntoIter: Send>,
        T: Task<Output: Send> + Send,
    {
        let tasks = tasks.into_iter();
        if self.config.order == QueueOrder::Fifo {
            let queue = TaskQueue::new(&self.config, Some(tasks), self.fault_threads);
            return self.drive(queue, |_| None, finisher);
        }
        let queue = TaskQueue::<I::IntoIter, T>::new(&self.config, None, self.fault_threads);
        queue.submit_all(tasks);
        queue.set_total();
        self.drive(queue, |_| None, finisher)
    }

    /// Processes items that depend on each other. `edges` has pairs of indexes of `items`: the second item
    /// starts after the first has succeeded, and the finisher has returned [`ControlFlow::Continue`] for it.
    ///
    /// An item fails if its processor returns `Err` or panics. After `Err`, it is processed again if the
    /// retry policy allows it. The items that depend on one that failed are not run, and are returned in
    /// [`Summary::not_run`].
    ///
    /// Of the items that may start, the order of the configuration decides.
    ///
    /// # Errors
    /// An edge names an item that does not exist, or closes a cycle. Nothing was started then.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use minder::jobs::Executor;
    /// use std::ops::ControlFlow;
    ///
    /// let compile = |step: &mut &str| if *step == "compile b" { Err("syntax error") } else { Ok(()) };
    /// let mut done = Vec::new();
    /// let finisher = |step, _| {
    ///     done.push(step);
    ///     ControlFlow::Continue(())
    /// };
    /// // The third step starts after the first, and the fourth after the second.
    /// let steps = ["compile a", "compile b", "link a", "link b"];
    /// let summary = Executor::new(2).run_graph(steps, [(0, 2), (1, 3)], compile, finisher)?;
    /// assert!(done.contains(&"link a"));
    /// assert_eq!(summary.not_run, ["link b"]);
    /// # Ok::<(), minder::jobs::GraphError>(())
    /// ```
    pub fn run_graph<T, R, E>(
        &self,
        items: impl IntoIterator<Item = T>,
        edges: impl IntoIterator<Item = (usize, usize)>,
        processor: impl Fn(&mut T) -> Result<R, E> + Sync,
        mut finisher: impl FnMut(T, Result<Result<R, E>, TaskPanic>) -> ControlFlow<()>,
    ) -> Result<Summary<T>, GraphError>
    where
        T: Send,
        R: Send,
        E: Send,
    {
        let items = items.into_iter().map(|value| Fallible { value, processor: &processor });
        let summary = self.run_task_graph(items, edges, |item, result| finisher(item.value, result))?;
        Ok(summary.map(|item| item.value))
    }

    /// Runs as [`run_graph`](Self::run_graph) with items that know how they are processed: see [`Task`].
    ///
    /// # Errors
    /// As [`run_graph`](Self::run_graph).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use minder::jobs::{Executor, Task};
    /// use std::ops::ControlFlow;
    ///
    /// struct Step(&'static str);
    ///
    /// impl Task for Step {
    ///     type Output = ();
    ///     fn process(&mut self) {}
    /// }
    ///
    /// let steps = ["link", "compile a", "compile b"].map(Step);
    /// let mut done = Vec::new();
    /// let finisher = |step: Step, _| {
    ///     done.push(step.0);
    ///     ControlFlow::Continue(())
    /// };
    /// Executor::new(2).run_task_graph(steps, [(1, 0), (2, 0)], finisher)?;
    /// assert_eq!(done[2], "link");
    /// # Ok::<(), minder::jobs::GraphError>(())
    /// ```
    pub fn run_task_graph<T: Task<Output: Send> + Send>(
        &self,
        tasks: impl IntoIterator<Item = T>,
        edges: impl IntoIterator<Item = (usize, usize)>,
        mut finisher: impl FnMut(T, Result<T::Output, TaskPanic>) -> ControlFlow<()>,
    ) -> Result<Summary<T>, GraphError> {
        let mut tasks: Vec<Option<T>> = tasks.into_iter().map(Some).collect();
        let graph = Graph::new(tasks.len(), edges)?;
        type NoSource<T> = std::iter::Empty<Numbered<T>>;
        let mut queue = TaskQueue::<NoSource<T>, _>::new(&self.config, None, self.fault_threads);
        queue.hold_dependents();
        let mut numbers = vec![0; tasks.len()];
        for (place, index) in graph.order.into_iter().enumerate() {
            let after: Vec<u64> = graph.before[index].iter().map(|&before| numbers[before]).collect();
            // The queue numbers the tasks from 1.
            let number = place as u64 + 1;
            numbers[index] = number;
            if let Some(task) = tasks[index].take() {
                queue.submit(Numbered { task, number }, &after);
            }
        }
        queue.set_total();
        let number = |task: &Numbered<T>| Some(task.number);
        let summary = self.drive(queue, number, |task, result| finisher(task.task, result));
        Ok(summary.map(|task| task.task))
    }

    /// Runs the tasks of a queue, and returns what came of them. Tasks may depend on those for which
    /// `number` returns their number.
    fn drive<I, T>(
        &self,
        queue: TaskQueue<I, T>,
        number: impl Fn(&T) -> Option<u64>,
        mut finisher: impl FnMut(T, Result<T::Output, TaskPanic>) -> ControlFlow<()>,
    ) -> Summary<T>
    where
        I: Iterator<Item = T> + Send,
        T: Task<Output: Send> + Send,
    {
        let mut first_panic = None;
        let mut is_stopped = false;
        let mut not_finished = Vec::new();
        let mut finish = |(task, result): Finished<T>| {
            if let (Err(panic), None) = (&result, &first_panic) {
                first_panic = Some(panic.clone());
            }
            if is_stopped {
                not_finished.push(task);
                queue.discard(result);
                return ExtraThread::No;
            }
            let number = number(&task);
            if finisher(task, result).is_break() {
                is_stopped = true;
                queue.stop();
                return ExtraThread::No;
            }
            number.map_or(ExtraThread::No, |number| queue.release(number))
        };
        if self.is_serial || !run_on_threads(&queue, &mut finish) {
            run_on_caller(&queue, &mut finish);
        }
        let mut summary = queue.into_summary();
        summary.first_panic = first_panic.or(summary.first_panic);
        summary.not_finished = not_finished;
        summary
    }
}

/// Runs the tasks on threads. Returns whether it did: if not, no thread could be started.
fn run_on_threads<I, T>(queue: &TaskQueue<I, T>, mut finish: impl FnMut(Finished<T>) -> ExtraThread) -> bool
where
    I: Iterator<Item = T> + Send,
    T: Task<Output: Send> + Send,
{
    thread::scope(|scope| {
        let _abandon = AbandonOnPanic(queue);
        if !queue.add_thread() {
            return true;
        }
        if !start_thread(scope, queue) {
            return false;
        }
        let mut batch = VecDeque::new();
        let mut pace = ResultPace::new();
        while queue.results.receive(&mut batch, pace.is_fast()) {
            pace.note(batch.len());
            for finished in batch.drain(..) {
                if finish(finished) == ExtraThread::Start {
                    start_thread(scope, queue);
                }
            }
        }
        true
    })
}

/// Runs the tasks on the caller's thread.
fn run_on_caller<I: Iterator<Item = T>, T: Task>(
    queue: &TaskQueue<I, T>,
    mut finish: impl FnMut(Finished<T>) -> ExtraThread,
) {
    queue.add_caller();
    let mut batch = VecDeque::new();
    let mut worker = Worker::new();
    while let Next::Process(start, task, _) = queue.next(&mut worker) {
        queue.process(&mut worker, start, task);
        queue.results.take(&mut batch);
        // The caller is the only thread there is.
        batch.drain(..).for_each(|finished| _ = finish(finished));
    }
}

/// Starts a thread that was counted. Returns whether it did.
fn start_thread<'scope, I, T>(scope: &'scope Scope<'scope, '_>, queue: &'scope TaskQueue<I, T>) -> bool
where
    I: Iterator<Item = T> + Send,
    T: Task<Output: Send> + Send,
{
    let work = move || {
        let mut worker = Worker::new();
        while let Next::Process(start, task, extra_thread) = queue.next(&mut worker) {
            if extra_thread == ExtraThread::Start {
                start_thread(scope, queue);
            }
            queue.process(&mut worker, start, task);
        }
    };
    // The code of the caller is called where its panics are caught. A thread that ended by another one
    // would leave the caller waiting for it.
    let work = move || {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            queue.thread_panicked(payload);
        }
    };
    let thread = thread::Builder::new().name("minder-executor".to_owned());
    let is_started = !queue.has_start_fault() && thread.spawn_scoped(scope, work).is_ok();
    if !is_started {
        queue.thread_failed();
    }
    is_started
}

/// Lets the threads end if the finisher panics: they start nothing more, and wait for no receiver.
struct AbandonOnPanic<'q, I: Iterator<Item = T>, T: Task>(&'q TaskQueue<I, T>);

impl<I: Iterator<Item = T>, T: Task> Drop for AbandonOnPanic<'_, I, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.results.abandon();
            self.0.stop();
        }
    }
}
