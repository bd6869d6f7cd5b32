//! The result of a run of an executor.

use super::super::config::HaltReason;
use super::super::scheduler::JobCounts;
use super::panic::TaskPanic;

/// The result of a run. Every item that was read from the iterator was finished, or is in
/// [`not_run`](Self::not_run) or [`not_finished`](Self::not_finished).
///
/// That includes each item that the iterator returned before it panicked: the panic ends the iterator, and
/// the items after it are not read. A panic of a cost ends nothing: its item costs 0, and the items after
/// it are read.
///
/// ```
/// use minder::jobs::{Executor, Summary};
/// use std::ops::ControlFlow;
///
/// let summary: Summary<u32> = Executor::serial().run(0..100, |_| (), |number, _| {
///     if number == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
/// });
/// let Summary { counts, is_stopped, threads, .. } = &summary;
/// assert_eq!((counts.submitted, counts.succeeded, *is_stopped, *threads), (3, 3, true, 0));
/// assert!(summary.not_run.is_empty() && summary.not_finished.is_empty() && summary.halted_by.is_none());
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary<T> {
    /// The numbers of items that were read, that succeeded, and that failed. An item whose
    /// processor panicked failed.
    pub counts: JobCounts,
    /// The items that were read and not run to the end: because the finisher stopped the run, the halt
    /// policy took effect, or an item that they depend on failed.
    pub not_run: Vec<T>,
    /// The items that were processed while, or before, the finisher stopped the run, and that it was not
    /// called for. Their outputs were dropped. They count as succeeded or failed.
    pub not_finished: Vec<T>,
    /// `true` if the finisher stopped the run.
    pub is_stopped: bool,
    /// The policy that stopped further starts, if one did.
    pub halted_by: Option<HaltReason>,
    /// The number of threads that were started. 0 in the serial form, and if none could be started.
    pub threads: usize,
    /// `true` if a thread was to be started and could not be: fewer than the degree shared the
    /// items.
    pub lacks_threads: bool,
    /// The first panic of a processor in the order of completion. If none has panicked: the first panic of
    /// the iterator, of [`Task::cost`](super::Task::cost), or of an output that was dropped. The items after
    /// a panic of the iterator are not known.
    pub first_panic: Option<TaskPanic>,
}

impl<T> Summary<T> {
    /// Panics as the first item that panicked did, or as the iterator did. Returns if none has panicked.
    ///
    /// # Panics
    /// If an item or the iterator panicked.
    ///
    /// ```should_panic
    /// use minder::jobs::Executor;
    /// use std::ops::ControlFlow;
    ///
    /// let divide = |number: &mut i32| 10 / *number;
    /// let summary = Executor::new(2).run([5, 0, 2], divide, |_, _| ControlFlow::Continue(()));
    /// assert_eq!((summary.counts.succeeded, summary.counts.failed), (2, 1));
    /// summary.resume_first_panic(); // attempt to divide by zero
    /// ```
    pub fn resume_first_panic(&self) {
        if let Some(panic) = &self.first_panic {
            panic.clone().resume();
        }
    }

    pub(super) fn map<U>(self, mut item: impl FnMut(T) -> U) -> Summary<U> {
        Summary {
            counts: self.counts,
            not_run: self.not_run.into_iter().map(&mut item).collect(),
            not_finished: self.not_finished.into_iter().map(item).collect(),
            is_stopped: self.is_stopped,
            halted_by: self.halted_by,
            threads: self.threads,
            lacks_threads: self.lacks_threads,
            first_panic: self.first_panic,
        }
    }
}
