//! The traits that a user of the pool implements: the source of jobs, and the handler of their
//! children.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::scheduler::{Attempt, JobResult};
use crate::{
    ChildId, ChildSet, Command, Error, Event, Outcome, Result, Size, SpawnOptions, Stream, Termination,
};

/// The result of asking for a job.
///
/// ```
/// use minder::jobs::NextJob;
/// use std::sync::mpsc::{Receiver, TryRecvError, channel};
///
/// /// Returns the next line that another thread sent. That thread calls `JobPool::wake` after each.
/// fn next_line(lines: &Receiver<String>) -> NextJob<String> {
///     match lines.try_recv() {
///         Ok(line) => NextJob::Ready(line),
///         Err(TryRecvError::Empty) => NextJob::Pending,
///         Err(TryRecvError::Disconnected) => NextJob::Exhausted,
///     }
/// }
/// let (sender, lines) = channel();
/// assert!(matches!(next_line(&lines), NextJob::Pending));
/// drop(sender);
/// assert!(matches!(next_line(&lines), NextJob::Exhausted));
/// ```
#[derive(Debug)]
pub enum NextJob<J> {
    /// A job.
    Ready(J),
    /// No job now. Call [`JobPool::wake`] when there is one.
    ///
    /// [`JobPool::wake`]: super::JobPool::wake
    Pending,
    /// There are no more jobs.
    Exhausted,
}

/// The command that is started for a job, and its options.
///
/// ```
/// use minder::jobs::SpawnRequest;
/// use minder::{Command, SpawnOptions};
/// let request = SpawnRequest::new(Command::new("true")).options(SpawnOptions::new().rank(1));
/// # let _ = request;
/// ```
#[derive(Debug)]
#[must_use]
pub struct SpawnRequest {
    /// Boxed: a request moves several times before its child is started.
    pub(super) parts: Box<(Command, SpawnOptions)>,
}

impl SpawnRequest {
    /// Returns a request for this command with default options.
    pub fn new(command: Command) -> Self {
        Self { parts: Box::new((command, SpawnOptions::new())) }
    }

    /// Sets how the set treats the child.
    pub fn options(mut self, options: SpawnOptions) -> Self {
        self.parts.1 = options;
        self
    }
}

/// Supplies the jobs of one worker loop, and admits them.
///
/// The methods are called with the scheduler locked: they must not block, and must call no method of
/// the pool except [`JobPool::wake`].
///
/// [`JobPool::wake`]: super::JobPool::wake
///
/// ```
/// use minder::jobs::{Attempt, JobSource, NextJob};
///
/// /// Copies of files, of which few run at a time.
/// struct Copies(std::vec::IntoIter<&'static str>);
///
/// impl JobSource for Copies {
///     type Job = &'static str;
///
///     fn next_job(&mut self) -> NextJob<&'static str> {
///         self.0.next().map_or(NextJob::Exhausted, NextJob::Ready)
///     }
///
///     fn cost(&self, file: &&'static str) -> u64 {
///         std::fs::metadata(file).map_or(0, |file| file.len())
///     }
///     fn key(&mut self, file: &&'static str) -> Option<u64> {
///         Some(file.len() as u64) // `SchedulerOptions::max_per_key` of each length run at once
///     }
///     fn admit(&mut self, _attempt: Attempt, running: u64) -> bool {
///         running < 2 // the disk serves no more
///     }
/// }
/// let mut copies = Copies(vec!["a"].into_iter());
/// assert_eq!(copies.key(&"a"), Some(1));
/// assert_eq!(copies.cost(&"/no such file"), 0);
/// assert!(matches!(copies.next_job(), NextJob::Ready("a")));
/// assert!(matches!(copies.next_job(), NextJob::Exhausted));
/// ```
pub trait JobSource {
    /// The caller's data of a job.
    type Job: Send;

    /// Returns the next job.
    fn next_job(&mut self) -> NextJob<Self::Job>;

    /// Returns the cost of a job, in any unit, for the orders by cost. Called once, right after
    /// [`next_job`](Self::next_job) has returned the job. Default: 0.
    fn cost(&self, _job: &Self::Job) -> u64 {
        0
    }

    /// Returns the key of a job, if it has one: see [`Scheduler::submit_keyed`]. Called once, as
    /// [`cost`](Self::cost). Default: `None`.
    ///
    /// [`Scheduler::submit_keyed`]: super::Scheduler::submit_keyed
    fn key(&mut self, _job: &Self::Job) -> Option<u64> {
        None
    }

    /// Returns whether a job may start now, while `running` others run. Called just before each start.
    ///
    /// After `true`, [`JobHandler::prepare`] is called. After `false`, the job stays at the head of the
    /// queue. Call [`JobPool::wake`] when the answer may have changed. It is also asked again whenever a
    /// job finishes.
    ///
    /// [`JobPool::wake`]: super::JobPool::wake
    fn admit(&mut self, _attempt: Attempt, _running: u64) -> bool {
        true
    }
}

/// The callbacks of one worker loop: they turn jobs into commands, and receive events and results. No
/// lock is held while they run.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::jobs::{Attempt, ChildControl, JobHandler, JobPool, JobResult, JobSource, NextJob};
/// use minder::jobs::{SchedulerOptions, SpawnRequest};
/// use minder::{ChildId, ChildSetOptions, Command, Error, Event, Outcome, Stdio, Termination};
/// use std::time::{Duration, Instant};
///
/// /// Runs `cat` once, and writes a text to it.
/// #[derive(Default)]
/// struct OneCat {
///     is_taken: bool,
///     output: Vec<u8>,
/// }
///
/// impl JobSource for OneCat {
///     type Job = &'static str;
///
///     fn next_job(&mut self) -> NextJob<&'static str> {
///         if std::mem::replace(&mut self.is_taken, true) {
///             return NextJob::Exhausted;
///         }
///         NextJob::Ready("text")
///     }
/// }
///
/// impl JobHandler for OneCat {
///     fn prepare(&mut self, _: Attempt, _: &&'static str) -> Result<SpawnRequest, JobResult> {
///         let mut command = Command::new("cat");
///         command.stdin(Stdio::piped()).stdout(Stdio::piped());
///         Ok(SpawnRequest::new(command))
///     }
///     fn started(&mut self, _: Attempt, job: &&'static str, id: ChildId, control: &mut ChildControl<'_>) {
///         if control.write(id, job.as_bytes()).is_err() || control.close_stdin(id).is_err() {
///             eprintln!("child {id} has closed its input");
///         }
///     }
///     fn event(
///         &mut self,
///         _: Attempt,
///         _: &&'static str,
///         event: Event,
///         _: &mut ChildControl<'_>,
///     ) -> Option<Termination> {
///         if let Event::Output { chunk, .. } = event {
///             self.output.extend_from_slice(&chunk);
///         }
///         (self.output.len() > 1000).then_some(Termination::IMMEDIATE)
///     }
///     fn finished(&mut self, _: Attempt, _: &&'static str, outcome: Outcome) -> JobResult {
///         if outcome.exit.status.success() { JobResult::Success } else { JobResult::Failure }
///     }
///     fn spawn_failed(&mut self, _: Attempt, _: &&'static str, error: Error) -> JobResult {
///         eprintln!("{error}");
///         JobResult::PermanentFailure
///     }
///
///     // These do nothing by default.
///     fn deferred(&mut self, attempt: Attempt, _: &&'static str) {
///         eprintln!("job {} starts later", attempt.job);
///     }
///     fn worker_failed(&mut self, error: &Error) {
///         eprintln!("{error}");
///     }
///     fn due(&self) -> Option<Instant> {
///         None // no call of `idle` is needed
///     }
///     fn idle(&mut self, _: &mut ChildControl<'_>) {}
/// }
///
/// let pool = JobPool::new(SchedulerOptions::new(), Duration::from_secs(5));
/// let handlers = pool.run(1, &ChildSetOptions::new(), |_index| OneCat::default())?;
/// assert_eq!(handlers[0].output, b"text");
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
pub trait JobHandler: JobSource {
    /// Returns what to start. `Err` is the result of a job that is not started.
    fn prepare(&mut self, attempt: Attempt, job: &Self::Job) -> std::result::Result<SpawnRequest, JobResult>;

    /// A prepared job could not be started, because no descriptor, process or memory was free. It is
    /// prepared again later, perhaps by another loop.
    fn deferred(&mut self, _attempt: Attempt, _job: &Self::Job) {}

    /// A job was started. With `control` its output mode can be changed, and its input written.
    fn started(
        &mut self,
        _attempt: Attempt,
        _job: &Self::Job,
        _child: ChildId,
        _control: &mut ChildControl<'_>,
    ) {
    }

    /// Handles an event of a running job: output, the end of a stream, room in its input, a stop.
    /// Returning `Some` kills the job. By default the events are dropped.
    fn event(
        &mut self,
        _attempt: Attempt,
        _job: &Self::Job,
        _event: Event,
        _control: &mut ChildControl<'_>,
    ) -> Option<Termination> {
        None
    }

    /// Returns the result of a job whose child is done. [`JobPool::is_last_attempt`] returns here
    /// whether a failure would be final.
    ///
    /// [`JobPool::is_last_attempt`]: super::JobPool::is_last_attempt
    fn finished(&mut self, attempt: Attempt, job: &Self::Job, outcome: Outcome) -> JobResult;

    /// Returns the result of a job that could not be started.
    fn spawn_failed(&mut self, attempt: Attempt, job: &Self::Job, error: Error) -> JobResult;

    /// The loop ends with this error. All jobs of the pool are killed afterwards.
    fn worker_failed(&mut self, _error: &Error) {}

    /// Returns when [`idle`](Self::idle) must be called again. The loop does not end before this
    /// returns `None`.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Called before the loop waits: the time to write collected output, and to change output modes.
    fn idle(&mut self, _control: &mut ChildControl<'_>) {}
}

/// The operations that a [`JobHandler`] may use on the running jobs of its loop.
#[derive(Debug)]
pub struct ChildControl<'a>(pub(super) &'a mut ChildSet);

impl ChildControl<'_> {
    /// See [`ChildSet::start_streaming`].
    ///
    /// # Errors
    /// As that method.
    pub fn start_streaming(&mut self, id: ChildId) -> Result<()> {
        self.0.start_streaming(id)
    }

    /// See [`ChildSet::forward`].
    ///
    /// # Errors
    /// As that method.
    pub fn forward(&mut self, id: ChildId, stream: Stream, file: &Arc<File>) -> Result<()> {
        self.0.forward(id, stream, file)
    }

    /// See [`ChildSet::write`].
    ///
    /// # Errors
    /// As that method.
    pub fn write(&mut self, id: ChildId, bytes: &[u8]) -> Result<usize> {
        self.0.write(id, bytes)
    }

    /// See [`ChildSet::close_stdin`].
    ///
    /// # Errors
    /// As that method.
    pub fn close_stdin(&mut self, id: ChildId) -> Result<()> {
        self.0.close_stdin(id)
    }

    /// See [`ChildSet::kill`].
    ///
    /// # Errors
    /// As that method.
    pub fn kill(&mut self, id: ChildId, how: Termination) -> Result<()> {
        self.0.kill(id, how)
    }

    /// See [`ChildSet::resize_terminal`].
    ///
    /// # Errors
    /// As that method.
    pub fn resize_terminal(&mut self, id: ChildId, size: Size) -> Result<()> {
        self.0.resize_terminal(id, size)
    }

    /// See [`ChildSet::set_deadline`].
    ///
    /// # Errors
    /// As that method.
    pub fn set_deadline(&mut self, id: ChildId, deadline: Option<(Instant, Termination)>) -> Result<()> {
        self.0.set_deadline(id, deadline)
    }

    /// See [`ChildSet::suspended_time`].
    ///
    /// # Errors
    /// As that method.
    pub fn suspended_time(&self, id: ChildId) -> Result<Duration> {
        self.0.suspended_time(id)
    }

    /// See [`ChildSet::suspend`].
    ///
    /// # Errors
    /// As that method.
    pub fn suspend(&mut self, id: ChildId) -> Result<()> {
        self.0.suspend(id)
    }

    /// See [`ChildSet::resume`].
    ///
    /// # Errors
    /// As that method.
    pub fn resume(&mut self, id: ChildId) -> Result<()> {
        self.0.resume(id)
    }
}
