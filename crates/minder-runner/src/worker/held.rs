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

use std::time::{Duration, Instant};

use minder::Outcome;
use minder::jobs::Attempt;

use super::held_queue::{HELD_FILES_MAX, HeldFinish};
use super::state::RunWorker;
use crate::config::OutputView;
use crate::input::JobArgs;
use crate::queue::Task;
use crate::report::EndCause;
use crate::worker::running_job::RunningJob;

/// How long an event is held back. A machine that shuts down sends its signals within some hundred
/// milliseconds.
const HOLD: Duration = Duration::from_secs(1);
/// The most held jobs of one worker thread, and the most bytes that they keep in memory. Beyond
/// either, and beyond [`HELD_FILES_MAX`] open files, the oldest job is recorded at once.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;
/// The same two if all results are held back. Beyond either, no job starts until the oldest is due.
const ALL_HELD_MAX: usize = 4096;
const ALL_HELD_BYTES_MAX: usize = 16 << 20;

impl RunWorker<'_> {
    /// Returns `true` if the event of a job without a further attempt is to be held back.
    pub(crate) fn must_hold(&self, running: &RunningJob, outcome: &Outcome) -> bool {
        let status = outcome.exit.status;
        (self.context.config.hold_results.is_some()
            || minder_os::signals::looks_terminated(status.code(), status.signal()))
            && !outcome.killed
            && !running.is_interrupted
            && !self.context.pool.is_cancelled()
    }

    /// Writes the rest of the job's lines that were partly written. Returns what has to be written before the
    /// event of the job, if that waits for a reader.
    pub(crate) fn unread_output(&self, running: &mut RunningJob) -> Option<[u64; 2]> {
        if running.is_interrupted {
            return None;
        }
        if self.context.config.view == OutputView::Lines {
            let (lines, mut sink) =
                running.output.lines(self.context.sequencer, running.number, self.line_max);
            lines.finish_open_lines(&mut sink);
        }
        self.context.sequencer.take_queued(running.number)
    }

    /// Holds the event and the output of a job back: for a moment if `may_be_cut_off`, and until its output
    /// is written if that is `queued`.
    pub(crate) fn hold(
        &mut self,
        attempt: Attempt,
        task: &Task,
        mut running: Box<RunningJob>,
        (outcome, cause): (Outcome, EndCause),
        (may_be_cut_off, queued): (bool, Option<[u64; 2]>),
    ) {
        // A job that waits for the reader alone exited before a halt, too.
        running.is_held = may_be_cut_off || (queued.is_some() && !self.context.pool.is_cancelled());
        // While the output is held, no other job may show its output live.
        self.context.sequencer.note_finished();
        let columns = JobArgs::Columns(task.columns().to_vec());
        let task = Task::new(task.number, columns);
        let output = self.batch.take_unfinished();
        let status = outcome.exit.status;
        let hold = match self.context.config.hold_results {
            Some(hold) if !minder_os::signals::looks_terminated(status.code(), status.signal()) => hold,
            hold => hold.unwrap_or_default().max(HOLD),
        };
        let hold = if may_be_cut_off { hold } else { Duration::ZERO };
        let now = Instant::now();
        let due = now.checked_add(hold).unwrap_or(now);
        self.held.push_back(HeldFinish { due, queued, attempt, task, running, outcome, cause, output });
        while self.context.config.hold_results.is_none() && self.holds_more_than(HELD_MAX, HELD_BYTES_MAX) {
            // What waits for a reader is little: one job at a time is shown.
            let Some(oldest) = self.held.iter().position(|held| self.is_written(held)) else { break };
            self.release_at(oldest);
        }
    }

    /// Returns `true` if no job may start, because too many results are held back.
    pub(crate) fn holds_too_much(&self) -> bool {
        self.context.config.hold_results.is_some() && self.holds_more_than(ALL_HELD_MAX, ALL_HELD_BYTES_MAX)
    }

    fn holds_more_than(&self, jobs: usize, bytes: usize) -> bool {
        let sum = |value: fn(&HeldFinish) -> usize| self.held.iter().map(value).sum::<usize>();
        self.held.len() > jobs
            || sum(|held| held.output.len()) > bytes
            || sum(|held| held.output.open_files() + held.running.output.open_files()) > HELD_FILES_MAX
    }

    /// Records all held jobs.
    pub(crate) fn release_all(&mut self) {
        while let Some(first) = self.held.front() {
            if !self.is_written(first) {
                self.context.sequencer.stdio.wait_drained();
            }
            self.release_at(0);
        }
    }

    /// Returns when the first held job is due: now, if the run shuts down. Jobs that wait for a reader do not
    /// count: after that this worker thread is woken.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let due = self.held.iter().filter(|held| self.is_written(held)).map(|held| held.due).min()?;
        Some(if self.context.status.is_shutting_down() { due.min(Instant::now()) } else { due })
    }

    /// Records the held jobs that are due. When the run shuts down, all of them are due.
    pub(crate) fn release(&mut self) {
        let now = Instant::now();
        while let Some(due) = self.held.iter().position(|held| {
            (held.due <= now || self.context.status.is_shutting_down()) && self.is_written(held)
        }) {
            self.release_at(due);
        }
    }

    fn is_written(&self, held: &HeldFinish) -> bool {
        held.queued.is_none_or(|queued| self.context.sequencer.has_written(queued))
    }

    fn release_at(&mut self, at: usize) {
        let Some(first) = self.held.remove(at) else { return };
        let HeldFinish { attempt, task, mut running, outcome, cause, output, .. } = first;
        self.batch.restore_unfinished(output);
        self.finish_job(attempt, &task, &mut running, &outcome, cause);
        // `take_unfinished` closed the files; `restore_unfinished` has opened them again.
        if self.batch.is_full(self.slots) {
            self.flush();
        }
        // Only now: the job is in the batch and counted there again, so no other job can claim live
        // output in between.
        self.context.sequencer.forget_finished();
    }
}
