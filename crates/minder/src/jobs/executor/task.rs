//! The tasks that an executor runs.

use super::super::scheduler::JobResult;

/// An item that knows how it is processed: what it costs, and whether it failed.
///
/// [`Executor::run`](super::Executor::run) makes tasks of items and one closure. A type that implements
/// this trait can be an enumeration of different kinds of work, or a `Box<dyn Task<Output = …> + Send>`:
/// then each item has a different processor.
///
/// ```
/// use minder::jobs::{Executor, JobResult, RetryPolicy, SchedulerOptions, Task};
/// use std::ops::ControlFlow;
///
/// /// A download that succeeds at the third attempt.
/// struct Download {
///     bytes: u64,
///     attempts: u32,
/// }
///
/// impl Task for Download {
///     type Output = Result<u32, &'static str>;
///
///     fn process(&mut self) -> Self::Output {
///         self.attempts += 1;
///         if self.attempts == 3 { Ok(self.attempts) } else { Err("connection reset") }
///     }
///     fn cost(&self) -> u64 {
///         self.bytes
///     }
///     fn result(&self, output: &Self::Output) -> JobResult {
///         if output.is_ok() { JobResult::Success } else { JobResult::Failure }
///     }
/// }
///
/// let config = SchedulerOptions::new().max_running(4).retry(RetryPolicy::new().max_attempts(5));
/// let summary = Executor::with_config(config).run_tasks(
///     [100, 200].map(|bytes| Download { bytes, attempts: 0 }),
///     |_, result| {
///         assert_eq!(result.expect("no panic"), Ok(3));
///         ControlFlow::Continue(())
///     },
/// );
/// assert_eq!((summary.counts.succeeded, summary.counts.retried), (2, 4));
/// ```
pub trait Task {
    /// The output of the task, which the finisher gets.
    type Output;

    /// Does the work. Called on a thread of the executor, or on the caller's in the serial form.
    ///
    /// The task may change itself. If this panics, the finisher gets the task as the panic left it.
    fn process(&mut self) -> Self::Output;

    /// Returns the cost, in any unit, for the orders by cost. Called once, on the caller's thread. The
    /// orders [`Fifo`](super::super::QueueOrder::Fifo) and [`Random`](super::super::QueueOrder::Random)
    /// ignore it. If this panics, the task costs 0, and [`Summary::first_panic`](super::Summary::first_panic)
    /// has the panic. Default: 0.
    fn cost(&self) -> u64 {
        0
    }

    /// Returns whether the task succeeded, for retries, dependents and the halt policy. Called right
    /// after [`process`](Self::process), on the same thread. Default: it did.
    ///
    /// After [`Failure`](JobResult::Failure), and as the retry policy allows, the task is processed
    /// again, and this output is dropped. The finisher gets the last one.
    fn result(&self, _output: &Self::Output) -> JobResult {
        JobResult::Success
    }
}

impl<T: Task + ?Sized> Task for Box<T> {
    type Output = T::Output;

    fn process(&mut self) -> T::Output {
        (**self).process()
    }

    fn cost(&self) -> u64 {
        (**self).cost()
    }

    fn result(&self, output: &T::Output) -> JobResult {
        (**self).result(output)
    }
}

/// A task of a graph, and its number.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    pub(super) task: T,
    /// 0 before it was submitted.
    pub(super) number: u64,
}

impl<T: Task> Task for Numbered<T> {
    type Output = T::Output;

    fn process(&mut self) -> T::Output {
        self.task.process()
    }

    fn cost(&self) -> u64 {
        self.task.cost()
    }

    fn result(&self, output: &T::Output) -> JobResult {
        self.task.result(output)
    }
}

/// An item of a graph, and the closure that processes all items.
#[derive(Debug)]
pub(super) struct Fallible<'p, T, P> {
    pub(super) value: T,
    pub(super) processor: &'p P,
}

impl<T, R, E, P: Fn(&mut T) -> Result<R, E>> Task for Fallible<'_, T, P> {
    type Output = Result<R, E>;

    fn process(&mut self) -> Result<R, E> {
        (self.processor)(&mut self.value)
    }

    fn result(&self, output: &Result<R, E>) -> JobResult {
        if output.is_ok() { JobResult::Success } else { JobResult::Failure }
    }
}

/// An item and the closures that process all items and return their costs.
#[derive(Debug)]
pub(super) struct Item<'p, T, P, C> {
    pub(super) value: T,
    pub(super) processor: &'p P,
    pub(super) cost: &'p C,
}

impl<T, R, P: Fn(&mut T) -> R, C: Fn(&T) -> u64> Task for Item<'_, T, P, C> {
    type Output = R;

    fn process(&mut self) -> R {
        (self.processor)(&mut self.value)
    }

    fn cost(&self) -> u64 {
        (self.cost)(&self.value)
    }
}
