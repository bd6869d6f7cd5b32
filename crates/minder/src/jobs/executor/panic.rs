//! A panic of a task, as the caller gets it, and the panics of other code of the caller.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use minder_os::sync::Mutex;

/// The panic of a task. The finisher gets it, and [`Summary`](super::Summary) keeps the first.
///
/// ```
/// use minder::jobs::Executor;
/// use std::ops::ControlFlow;
///
/// let summary = Executor::new(2).run(
///     ["1", "x"],
///     |text| text.parse::<u32>().expect("a number"),
///     |_, result| {
///         if let Err(panic) = result {
///             assert!(panic.message().is_some_and(|message| message.starts_with("a number")));
///             let payload = panic.into_payload().expect("taken once");
///             assert!(payload.is::<String>());
///         }
///         ControlFlow::Continue(())
///     },
/// );
/// assert_eq!(summary.counts.failed, 1);
/// ```
#[derive(Clone)]
pub struct TaskPanic(Arc<Inner>);

struct Inner {
    message: Option<String>,
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

impl TaskPanic {
    pub(super) fn new(payload: Box<dyn Any + Send>) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Self(Arc::new(Inner { message, payload: Mutex::new(Some(payload)) }))
    }

    /// Returns the text of the panic, if it has one: `panic!` with a text does.
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// Returns the value that [`std::thread::JoinHandle::join`] returns for a panic, unless it was taken
    /// before: the summary keeps a copy of the first panic.
    pub fn into_payload(self) -> Option<Box<dyn Any + Send>> {
        self.0.payload.lock().take()
    }

    /// Panics with the payload, or with the text if the payload was taken.
    ///
    /// # Panics
    /// Always.
    ///
    /// ```
    /// use minder::jobs::Executor;
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    ///
    /// let run = || {
    ///     let summary = Executor::new(1).run([0], |n| 1 / *n, |_, result| match result {
    ///         Ok(_) => std::ops::ControlFlow::Continue(()),
    ///         Err(panic) => panic.resume(),
    ///     });
    ///     println!("{summary:?}");
    /// };
    /// assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    /// ```
    pub fn resume(self) -> ! {
        let text = self.0.message.clone().unwrap_or_else(|| "a task panicked".to_owned());
        let payload = self.into_payload().unwrap_or_else(|| Box::new(text));
        resume_unwind(payload)
    }
}

impl fmt::Debug for TaskPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPanic").field("message", &self.0.message).finish_non_exhaustive()
    }
}

impl fmt::Display for TaskPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            Some(message) => write!(f, "the task panicked: {message}"),
            None => f.write_str("the task panicked"),
        }
    }
}

impl std::error::Error for TaskPanic {}

/// Keeps the first panic of the caller's code that no finisher gets.
#[derive(Debug)]
pub(super) struct PanicStore(Mutex<Option<TaskPanic>>);

impl PanicStore {
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Runs code of the caller. Returns `None` if it panicked.
    pub(super) fn catch<R>(&self, act: impl FnOnce() -> R) -> Option<R> {
        catch_unwind(AssertUnwindSafe(act)).map_err(|payload| self.note(payload)).ok()
    }

    /// Keeps a panic if it is the first one.
    pub(super) fn note(&self, payload: Box<dyn Any + Send>) {
        let mut first = self.0.lock();
        if first.is_none() {
            *first = Some(TaskPanic::new(payload));
            return;
        }
        drop(first);
        // A payload is a value of the caller, whose drop may panic, too.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(payload);
        }
    }

    pub(super) fn into_inner(self) -> Option<TaskPanic> {
        self.0.into_inner()
    }
}
