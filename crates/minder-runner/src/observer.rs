//! The interface through which the engine reports what happens during a run.

use std::fmt;
use std::time::Duration;

use minder::jobs::JobCounts;

use crate::notice::Notice;
use crate::report::{FailureReason, JobEnd, RunReport};

/// Receives what the engine reports. The engine itself never prints: it writes the output of jobs
/// to standard output and standard error, and hands everything else to the observer.
///
/// Worker threads, the input thread and the main thread call it at the same time. No method may
/// block for long: the caller may hold the lock of the output sequencer.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Reports something that a person should know.
    fn notice(&self, notice: &Notice);

    /// Reports the command line of a job that is about to start. Called only if
    /// [`RunConfig::verbose`](crate::RunConfig::verbose) is set.
    fn command(&self, line: &str);

    /// Returns `true` if [`job_ended`](Self::job_ended) is wanted for a job that failed or, with `succeeded`,
    /// for one that did not. If it is for a failure, [`job_retried`](Self::job_retried) is wanted, too.
    fn wants_job_end(&self, succeeded: bool) -> bool;

    /// Returns `true` if the whole command line of a job that ended like this is wanted, not only its name.
    fn wants_command(&self, _failure: Option<&FailureReason>) -> bool {
        false
    }

    /// Reports the end of a job, after its output if that is written at once.
    fn job_ended(&self, end: &JobEnd);

    /// Reports the end of a failed attempt of a job that runs again. `attempt` counts from 1; `attempts_max`
    /// is the most that the job may have, if there is a limit.
    fn job_retried(&self, end: &JobEnd, attempt: u32, attempts_max: Option<u32>);

    /// Reports a job whose output is written next, after the last job of the run.
    fn final_output(&self, end: &JobEnd);

    /// Runs `write`, which writes these bytes of job output to a terminal, while the observer's own display
    /// is hidden.
    fn suspend_display(&self, bytes: &[u8], write: &mut dyn FnMut());

    /// Runs `act` while the display is hidden. Unlike [`suspend_display`](Self::suspend_display),
    /// it does not wait for a thread that is writing: the display may stay visible then.
    fn try_suspend_display(&self, act: &mut dyn FnMut());

    /// Returns `true` if [`snapshot`](Self::snapshot) may take a snapshot during the run. If not, the
    /// engine does not keep the table of running jobs for it.
    fn wants_snapshots(&self) -> bool;

    /// Returns `true` if the total number of jobs is wanted as early as possible: a regular file of
    /// arguments is then read twice.
    fn wants_total(&self) -> bool;

    /// Returns `true` if the durations of earlier runs of the command are wanted, for an estimate of the
    /// end. They are read before the first job starts.
    fn wants_history(&self) -> bool;

    /// Returns the time until the next call of [`snapshot`](Self::snapshot), or `None` if no more
    /// are wanted. `elapsed` is the age of the run.
    fn next_snapshot(&self, elapsed: Duration) -> Option<Duration>;

    /// Offers a snapshot of the run. `take` makes one that names at most the given number of
    /// running jobs; it costs a lock and a few allocations, so the observer calls it only when
    /// it draws.
    fn snapshot(&self, elapsed: Duration, take: &dyn Fn(usize) -> Snapshot);

    /// Reports that no worker thread runs any more and that all output was written.
    fn finished(&self, report: &RunReport);
}

/// The state of a run at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Jobs by state.
    pub counts: JobCounts,
    /// The number of jobs, if it is known.
    pub total: Option<u64>,
    /// `true` if the input has ended, so that the submitted jobs are all.
    pub input_ended: bool,
    /// The age of the run.
    pub elapsed: Duration,
    /// The oldest running jobs, oldest first.
    pub running: Vec<RunningSnapshot>,
    /// The median wall time of recent successful jobs, once three have finished.
    pub median: Option<Duration>,
    /// The mean wall time of a job in earlier runs of the same command, if it was asked for
    /// ([`Observer::wants_history`]) and there are any.
    pub expected: Option<Duration>,
    /// The time for which no output of jobs was written.
    pub silence: Duration,
    /// Why no job starts, such as `load 9 of 8`.
    pub paused: Option<String>,
}

impl Snapshot {
    /// Returns how many jobs have a result.
    pub fn finished(&self) -> u64 {
        self.counts.succeeded + self.counts.failed
    }

    /// Returns the number of jobs, as far as it is known: when the input has ended, all are
    /// submitted.
    pub fn known_total(&self) -> Option<u64> {
        self.total.or_else(|| self.input_ended.then_some(self.counts.submitted))
    }
}

/// One running job of a [`Snapshot`].
#[derive(Clone, Debug)]
pub struct RunningSnapshot {
    /// The job's number, from 1.
    pub job: u64,
    /// Its command line, shortened for display.
    pub name: String,
    /// The time for which it has been running, without the time in which it was suspended.
    pub age: Duration,
}
