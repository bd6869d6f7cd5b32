//! Jobs that may have ended because the whole run ends: their events are held back for a moment.
//!
//! A shutdown of the machine, `systemctl stop`, `scancel` and `kill -TERM -1` send one signal to
//! all processes, in any order. A job may die of it before the signal reaches this process. Such a
//! job did not fail: it was cut off with the run, gets no event, and runs again with `--resume`. So
//! the event of a job that was terminated by a signal, and not by minder, is held back. The slot is
//! free at once, and retries and halts are decided at once. Only the event and the output wait.

use std::time::{Duration, Instant};

use minder::Outcome;
use minder::jobs::Attempt;

use super::held_queue::{HELD_FILES_MAX, HeldFinish};
use super::state::RunWorker;
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
impl RunWorker<'_> {
    /// Returns `true` if the event of a job without a further attempt is to be held back.
    pub(crate) fn must_hold(&self, running: &RunningJob, outcome: &Outcome) -> bool {
        minder_os::signals::looks_terminated(outcome.exit.status.code(), outcome.exit.status.signal())
            && !outcome.killed
            && !running.is_interrupted
            && !self.context.pool.is_cancelled()
    }

    /// Holds the event and the output of a job back.
    pub(crate) fn hold(
        &mut self,
        attempt: Attempt,
        task: &Task,
        mut running: Box<RunningJob>,
        outcome: Outcome,
        cause: EndCause,
    ) {
        running.is_held = true;
        // While the output is held, no other job may show its output live.
        self.context.sequencer.note_finished();
        let columns = JobArgs::Columns(task.columns().to_vec());
        let task = Task::new(task.number, columns);
        let output = self.batch.take_unfinished();
        let due = Instant::now() + HOLD;
        self.held.push_back(HeldFinish { due, attempt, task, running, outcome, cause, output });
        while self.holds_too_much() {
            self.release_first();
        }
    }

    fn holds_too_much(&self) -> bool {
        let sum = |value: fn(&HeldFinish) -> usize| self.held.iter().map(value).sum::<usize>();
        self.held.len() > HELD_MAX
            || sum(|held| held.output.len()) > HELD_BYTES_MAX
            || sum(|held| held.output.open_files() + held.running.output.open_files()) > HELD_FILES_MAX
    }

    /// Records all held jobs.
    pub(crate) fn release_all(&mut self) {
        while !self.held.is_empty() {
            self.release_first();
        }
    }

    /// Returns when the oldest held job is due.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.held.front().map(|held| held.due)
    }

    /// Records the held jobs that are due. When the run shuts down, all of them are due.
    pub(crate) fn release(&mut self) {
        let now = Instant::now();
        while self.held.front().is_some_and(|held| held.due <= now || self.context.status.is_shutting_down())
        {
            self.release_first();
        }
    }

    fn release_first(&mut self) {
        let Some(first) = self.held.pop_front() else { return };
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
