//! Ends that look like the end of the run: their rows are held back until it is known.
//!
//! A machine that shuts down, `systemctl stop`, `scancel` and `kill -TERM -1` send one signal to
//! all processes, in any order. A job that dies of it before the run hears of it did not fail: it
//! was cut off with the run, has no row, and runs again with `--resume`. So a job that a signal
//! ended which is not ours waits for a moment. Its slot is free at once, and retries and halts are
//! decided at once; only its row and its output wait.

use std::time::{Duration, Instant};

use minder::Outcome;
use minder::jobs::Attempt;

use super::held_queue::{HELD_FILES_MAX, HeldFinish};
use super::state::RunWorker;
use crate::input::JobArgs;
use crate::queue::Task;
use crate::report::EndCause;
use crate::worker::running_job::RunningJob;

/// How long after such an end the run may be told to end: a machine that stops signals all within
/// some hundreds of milliseconds.
const HOLD: Duration = Duration::from_secs(1);
/// How many ends of one loop wait at most, with how many bytes in memory and how many open files.
/// Beyond that the oldest is written at once.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;
impl RunWorker<'_> {
    /// Whether the end of a job, which has no further attempt, is to be held back.
    pub(crate) fn is_to_hold(&self, running: &RunningJob, outcome: &Outcome) -> bool {
        minder::os::looks_terminated(outcome.exit.status)
            && !outcome.killed
            && !running.is_interrupted
            && !self.context.pool.is_cancelled()
    }

    /// Holds the end of a job back.
    pub(crate) fn hold(
        &mut self,
        attempt: Attempt,
        task: &Task,
        mut running: RunningJob,
        outcome: Outcome,
        cause: EndCause,
    ) {
        running.is_held = true;
        // What is shown as it comes goes to no other job meanwhile.
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
        let sum = |of: fn(&HeldFinish) -> usize| self.held.iter().map(of).sum::<usize>();
        self.held.len() > HELD_MAX
            || sum(|is_held| is_held.output.len()) > HELD_BYTES_MAX
            || sum(|is_held| is_held.output.open_files() + is_held.running.files_open()) > HELD_FILES_MAX
    }

    /// Writes all of them down.
    pub(crate) fn release_all(&mut self) {
        while !self.held.is_empty() {
            self.release_first();
        }
    }

    /// When the next end was held long enough.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.held.front().map(|is_held| is_held.due)
    }

    /// Writes down the ends that were held long enough, or all of them: the run ends, and they with
    /// it.
    pub(crate) fn release(&mut self) {
        let now = Instant::now();
        while self
            .held
            .front()
            .is_some_and(|is_held| is_held.due <= now || self.context.status.is_shutting_down())
        {
            self.release_first();
        }
    }

    fn release_first(&mut self) {
        let Some(is_held) = self.held.pop_front() else { return };
        let HeldFinish { attempt, task, mut running, outcome, cause, output, .. } = is_held;
        self.batch.restore_unfinished(output);
        self.finish_job(attempt, &task, &mut running, &outcome, cause);
        // What goes to files was closed, and is open again.
        if self.batch.is_full(self.slots) {
            self.flush();
        }
        // After it was gathered anew: there is no moment in which another may claim the stage.
        self.context.sequencer.forget_finished();
    }
}
