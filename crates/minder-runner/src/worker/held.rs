//! Jobs that may have ended because the whole run ends: their events are held back for a moment.
//!
//! A shutdown of the machine, `systemctl stop`, `scancel` and `kill -TERM -1` send one signal to
//! all processes, in any order. A job may die of it before the signal reaches this process. Such a
//! job did not fail: it was cut off with the run, gets no event, and runs again with `--resume`. So
//! the event of a job that was terminated by a signal, and not by minder, is held back. The slot is
//! free at once, and retries and halts are decided at once. Only the event and the output wait.
//!
//! A job may also exit with 0 although one of its processes was killed: a shell continues after a command
//! that failed. Where such signals are to be expected ([`RunConfig::hold_results`]), each result is held
//! back, and none is recorded that is held when the run is ended.
//!
//! A job whose output was written while it ran is held back, too, while that output waits for the reader
//! of a standard stream: a job with an event must not lose output when this process is killed.
//!
//! [`RunConfig::hold_results`]: crate::config::RunConfig::hold_results

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use minder::Outcome;
use minder::jobs::Attempt;
use minder_os::signals::looks_terminated;

use super::running_job::{AttemptEnd, RunningJob};
use crate::context::RunContext;
use crate::input::JobArgs;
use crate::queue::Task;
use crate::report::EndCause;

/// The default time for which an event is held back. A machine that shuts down sends its signals
/// within some hundred milliseconds.
const HOLD: Duration = Duration::from_secs(1);
/// The most held jobs of one worker thread, and the most bytes that they keep in memory. Beyond
/// either, and beyond [`HELD_FILES_MAX`] open files, the oldest job is recorded at once.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;
/// The most files that the held jobs of one worker thread keep open. Beyond that the oldest job is
/// recorded at once.
pub(crate) const HELD_FILES_MAX: usize = 16;
/// The first two limits if all results are held back. Beyond either, no job starts until the oldest is due.
const ALL_HELD_MAX: usize = 4096;
const ALL_HELD_BYTES_MAX: usize = 16 << 20;

/// A finished job that has no event yet.
pub(super) struct HeldJob {
    due: Instant,
    /// The part of the queues of the standard streams that has to be written before the job is
    /// recorded: its output is there, and nowhere else.
    queued: Option<[u64; 2]>,
    pub(super) attempt: Attempt,
    pub(super) task: Task,
    pub(super) running: Box<RunningJob>,
    pub(super) outcome: Outcome,
    pub(super) cause: EndCause,
}

/// The held jobs of one worker thread.
pub(super) struct HeldJobs<'a> {
    context: &'a RunContext<'a>,
    /// Oldest first.
    queue: VecDeque<HeldJob>,
}

impl<'a> HeldJobs<'a> {
    pub(super) fn new(context: &'a RunContext<'a>) -> Self {
        Self { context, queue: VecDeque::new() }
    }

    /// Returns `true` if the event of a job without a further attempt is to be held back.
    pub(super) fn must_hold(&self, running: &RunningJob, outcome: &Outcome) -> bool {
        let status = outcome.exit.status;
        (self.context.config.hold_results.is_some() || looks_terminated(status.code(), status.signal()))
            && !outcome.killed
            && !running.is_interrupted
            && !self.context.pool.is_cancelled()
    }

    /// Holds the event and the output of a job back: for a moment if `may_be_cut_off`, and until its output
    /// is written if that is `queued`.
    pub(super) fn push(
        &mut self,
        end: AttemptEnd<'_>,
        mut running: Box<RunningJob>,
        may_be_cut_off: bool,
        queued: Option<[u64; 2]>,
    ) {
        // A job that waits for the reader alone exited before a halt, too.
        running.is_held = may_be_cut_off || (queued.is_some() && !self.context.pool.is_cancelled());
        running.output.gathered.close_named_files();
        // While the output is held, no other job may show its output live.
        self.context.sequencer.note_finished();
        let status = end.outcome.exit.status;
        let hold = match self.context.config.hold_results {
            Some(hold) if !looks_terminated(status.code(), status.signal()) => hold,
            hold => hold.unwrap_or_default().max(HOLD),
        };
        let hold = if may_be_cut_off { hold } else { Duration::ZERO };
        let now = Instant::now();
        let due = now.checked_add(hold).unwrap_or(now);
        let AttemptEnd { attempt, task, outcome, cause } = end;
        let task = Task::new(task.number, JobArgs::Columns(task.columns().to_vec()));
        self.queue.push_back(HeldJob { due, queued, attempt, task, running, outcome: *outcome, cause });
    }

    /// Takes the oldest job if more are held than may be. One whose output waits for a reader is passed over:
    /// there is little of that, because one job at a time is shown.
    pub(super) fn pop_excess(&mut self) -> Option<HeldJob> {
        if self.context.config.hold_results.is_some() || !self.exceed(HELD_MAX, HELD_BYTES_MAX) {
            return None;
        }
        self.pop_if(|_| true)
    }

    /// Takes a job that is due. When the run shuts down, all of them are due.
    pub(super) fn pop_due(&mut self) -> Option<HeldJob> {
        let now = Instant::now();
        let all = self.context.status.is_shutting_down();
        self.pop_if(|held| all || held.due <= now)
    }

    /// Takes the oldest job, after a wait for the reader of its output.
    pub(super) fn wait_for_next(&mut self) -> Option<HeldJob> {
        if !self.is_written(self.queue.front()?) {
            self.context.sequencer.stdio.wait_drained();
        }
        self.queue.pop_front()
    }

    /// Returns when the first held job is due: now, if the run shuts down. Jobs that wait for a reader do not
    /// count: after that this worker thread is woken.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = self.queue.iter().filter(|held| self.is_written(held)).map(|held| held.due).min()?;
        Some(if self.context.status.is_shutting_down() { due.min(Instant::now()) } else { due })
    }

    /// Returns `true` if no job may start, because too many results are held back.
    pub(super) fn are_too_many(&self) -> bool {
        self.context.config.hold_results.is_some() && self.exceed(ALL_HELD_MAX, ALL_HELD_BYTES_MAX)
    }

    fn exceed(&self, jobs: usize, bytes: usize) -> bool {
        let sum = |value: fn(&HeldJob) -> usize| self.queue.iter().map(value).sum::<usize>();
        self.queue.len() > jobs
            || sum(|held| held.running.output.gathered.in_memory()) > bytes
            || sum(|held| held.running.output.open_files()) > HELD_FILES_MAX
    }

    /// Takes the oldest job whose output is written and that `is_wanted`.
    fn pop_if(&mut self, is_wanted: impl Fn(&HeldJob) -> bool) -> Option<HeldJob> {
        let at = self.queue.iter().position(|held| is_wanted(held) && self.is_written(held))?;
        self.queue.remove(at)
    }

    fn is_written(&self, held: &HeldJob) -> bool {
        held.queued.is_none_or(|queued| self.context.sequencer.has_written(queued))
    }
}
