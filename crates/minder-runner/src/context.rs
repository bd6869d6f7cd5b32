//! The state that the worker threads and the main thread share: references and flags.
//!
//! A thread that needs more than one of the locks behind [`RunContext`] takes them one after the
//! other. The exception is the output sequencer: under its lock, the observer may lock the progress
//! display.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use minder::jobs::{Attempt, JobPool};
use minder::poll::Poller;
use minder::{ErrorKind, ExitStatus};
use minder_os::sync::Mutex;
use minder_template::Job;

use crate::admission::AdmissionController;
use crate::commit::Committer;
use crate::config::RunConfig;
use crate::coordinator::Coordinator;
use crate::exit_status;
use crate::job_environment::JobEnvironment;
use crate::job_table::{JobEntry, JobTable};
use crate::memory_cap::JobCgroups;
use crate::observer::Observer;
use crate::output::sequencer::OutputSequencer;
use crate::own_peak::OwnPeak;
use crate::queue::{JobQueue, Task};
use crate::recorder::RunRecorder;
use crate::report::RunEnd;
use crate::results::table::ResultsTable;
use crate::text::shorten;

/// The values that the worker threads and the main thread share.
#[derive(Debug)]
pub(crate) struct RunContext<'a> {
    pub(crate) config: &'a RunConfig,
    pub(crate) environment: &'a JobEnvironment,
    pub(crate) observer: &'a Arc<dyn Observer>,
    /// The number of slots at the start of the run.
    pub(crate) slots: usize,
    /// The most slots that there are descriptors for.
    pub(crate) max_slots: usize,
    /// The most bytes of an incomplete line that each stream of a job may keep.
    pub(crate) line_max: usize,
    pub(crate) pool: &'a Arc<JobPool<Task>>,
    pub(crate) sequencer: &'a OutputSequencer,
    pub(crate) queue: &'a JobQueue,
    pub(crate) recorder: &'a RunRecorder,
    pub(crate) committer: Committer<'a>,
    pub(crate) job_table: &'a JobTable,
    /// The mean wall time of a job in earlier runs, for an estimate of the end.
    pub(crate) expected: Option<Duration>,
    pub(crate) admission: AdmissionController,
    pub(crate) table: Option<ResultsTable>,
    /// The cgroups for jobs whose memory is limited, if there can be any.
    pub(crate) cgroups: Option<Arc<JobCgroups>>,
    /// Output of earlier attempts is written once, before the first job starts.
    pub(crate) earlier_output: Once,
    pub(crate) status: RunStatus,
    /// Wakes the main thread.
    pub(crate) main_poller: &'a Poller,
    /// What ends the agents that run the jobs, if agents do.
    pub(crate) coordinator: Option<&'a Coordinator>,
}

/// The state of a run: values that every thread may set.
///
/// The counters, `first_failure` and `xargs_status` are independent of each other and of all other memory, so
/// relaxed ordering is enough. The main thread reads their final values after it has joined the
/// worker threads.
#[derive(Debug, Default)]
pub(crate) struct RunStatus {
    /// The end of the run before its jobs are done: [`RunEnd::Failed`] or [`RunEnd::InputFailed`].
    fatal_error: Mutex<Option<RunEnd>>,
    /// Jobs with a journal event: those that failed, and those that succeeded.
    recorded: [AtomicU64; 2],
    /// The exit status of the first job that failed, as a shell reports it. 0: no job has failed.
    first_failure: AtomicU8,
    /// The highest status of xargs of all jobs that failed or could not be started.
    xargs_status: AtomicU8,
    /// Decides which maximum resident set is recorded.
    pub(crate) own_peak: OwnPeak,
    /// Set when a signal ends the run, or when all guardians have died. The guard's thread sets it
    /// as well.
    shutdown: Arc<AtomicBool>,
    /// The number of times that the size of the terminal has changed, with `--pty`.
    pub(crate) resizes: AtomicU64,
    /// `true` if a message has named the hint for a job that uses the terminal.
    pub(crate) has_named_terminal: AtomicBool,
    /// When the last job that has the terminal was started.
    terminal_job_started: Mutex<Option<Instant>>,
    /// Set when a job that has the terminal has exited, before it stops to count as running.
    terminal_job_exited: AtomicBool,
    /// Set when Ctrl-C has ended a job that has the terminal.
    is_job_interrupted: AtomicBool,
    /// Set when the agents are to continue without this process.
    is_detached: AtomicBool,
    /// The number of running jobs that have exited and wait until their output is read. Counted while
    /// the run shuts down.
    unread: AtomicUsize,
    /// `true` if the kernel moves the output of a job to standard output.
    has_forwarded: AtomicBool,
}

impl RunStatus {
    /// Records how a job failed. Only the first one counts for [`Self::first_failure`].
    pub(crate) fn add_failure(&self, status: ExitStatus) {
        self.xargs_status.fetch_max(exit_status::of_xargs(status), Ordering::Relaxed);
        // A job that was asked to exit may have answered with 0.
        let status = exit_status::of_shell(status).max(1);
        let _ = self.first_failure.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Records that a job could not be started.
    pub(crate) fn add_start_failure(&self, kind: ErrorKind) {
        self.xargs_status.fetch_max(exit_status::of_xargs_start(kind), Ordering::Relaxed);
    }

    /// Returns the exit status of xargs for the jobs so far.
    pub(crate) fn xargs_status(&self) -> u8 {
        self.xargs_status.load(Ordering::Relaxed)
    }

    /// Returns the exit status of the first job that failed, as a shell reports it.
    pub(crate) fn first_failure(&self) -> Option<u8> {
        Some(self.first_failure.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// Returns the flag that is set when the run is asked to end. Jobs that die around that moment were
    /// cut off with it.
    pub(crate) fn shutdown_flag(&self) -> &Arc<AtomicBool> {
        &self.shutdown
    }

    /// Returns whether Ctrl-C has ended a job that has the terminal, and the run with it.
    pub(crate) fn is_job_interrupted(&self) -> bool {
        self.is_job_interrupted.load(Ordering::SeqCst)
    }

    /// Lets the agents of the run continue without this process, which ends.
    pub(crate) fn detach(&self) {
        self.is_detached.store(true, Ordering::SeqCst);
    }

    /// Returns whether the agents of the run continue without this process.
    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::SeqCst)
    }

    /// Notes that a job that has the terminal is about to start.
    pub(crate) fn note_terminal_job_start(&self) {
        *self.terminal_job_started.lock() = Some(Instant::now());
    }

    /// Returns how long ago the last job that has the terminal was started.
    pub(crate) fn terminal_job_age(&self) -> Duration {
        self.terminal_job_started.lock().map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Returns whether a job that has the terminal has exited since the last call of
    /// [`take_terminal_job_exit`](Self::take_terminal_job_exit).
    pub(crate) fn has_terminal_job_exited(&self) -> bool {
        self.terminal_job_exited.load(Ordering::SeqCst)
    }

    pub(crate) fn take_terminal_job_exit(&self) -> bool {
        self.terminal_job_exited.swap(false, Ordering::SeqCst)
    }

    /// Changes how many jobs of a worker thread have exited and are not read yet.
    pub(crate) fn set_unread(&self, before: usize, now: usize) {
        self.unread.fetch_sub(before, Ordering::SeqCst);
        self.unread.fetch_add(now, Ordering::SeqCst);
    }

    /// Returns how many running jobs have exited, while the run shuts down.
    pub(crate) fn unread(&self) -> usize {
        self.unread.load(Ordering::SeqCst)
    }

    /// Notes that the kernel moves the output of a job to standard output.
    pub(crate) fn note_forwarding(&self) {
        self.has_forwarded.store(true, Ordering::SeqCst);
    }

    /// Returns whether it did, for any job.
    pub(crate) fn has_forwarded(&self) -> bool {
        self.has_forwarded.load(Ordering::SeqCst)
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst)
    }

    pub(crate) fn count_recorded(&self, succeeded: bool) {
        self.recorded[usize::from(succeeded)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many jobs have a journal event: how many failed, and how many succeeded.
    pub(crate) fn recorded(&self) -> [u64; 2] {
        self.recorded.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns `true` if minder itself failed, and the jobs are killed for it.
    pub(crate) fn has_failed(&self) -> bool {
        self.fatal_error.lock().is_some()
    }

    /// Takes the error that ended the run.
    pub(crate) fn take_error(&self) -> Option<RunEnd> {
        self.fatal_error.lock().take()
    }
}

impl RunContext<'_> {
    /// Ends the run with this error. The first one counts.
    pub(crate) fn fail(&self, error: String) {
        self.fail_with(RunEnd::Failed(error));
    }

    /// Ends the run because its input lacks a value that every job needs. The first error counts.
    pub(crate) fn fail_input(&self, error: String) {
        self.fail_with(RunEnd::InputFailed(error));
    }

    /// Ends the run as Ctrl-C does, because a job that has the terminal died of it.
    pub(crate) fn interrupt(&self) {
        self.status.is_job_interrupted.store(true, Ordering::SeqCst);
        self.status.shutdown.store(true, Ordering::SeqCst);
        self.pool.cancel();
    }

    /// Notes that a job that has the terminal has exited. A key that it got is pending in the main thread by
    /// now, and must not end the run, which it would if it were read when no job runs any more.
    pub(crate) fn note_terminal_job_exit(&self) {
        self.status.terminal_job_exited.store(true, Ordering::SeqCst);
        // It fails only for an invalid descriptor.
        let _ = self.main_poller.notify();
    }

    fn fail_with(&self, end: RunEnd) {
        self.status.fatal_error.lock().get_or_insert(end);
        self.pool.kill();
    }

    /// Returns `true` if a failure of this attempt would be the job's last.
    pub(crate) fn is_last_attempt(&self, attempt: Attempt) -> bool {
        self.config.control.attempts == 1 || self.pool.is_last_attempt(attempt)
    }

    /// Returns what messages call a running job.
    pub(crate) fn job_name(&self, number: u64, entry: &JobEntry) -> String {
        if let Some(name) = self.config.name_of(number) {
            return name.to_owned();
        }
        let total = self.queue.total();
        let job = Job { columns: &entry.columns, number, slot: entry.slot, total, ..Job::default() };
        shorten(&self.config.template.display_name(&job))
    }
}

/// Ends the run if its worker thread panics: no other thread would finish its jobs.
pub(crate) struct PanicGuard<'a, 'b>(pub(crate) &'a RunContext<'b>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a part of minder panicked; this is a defect of minder".to_owned());
        }
    }
}
