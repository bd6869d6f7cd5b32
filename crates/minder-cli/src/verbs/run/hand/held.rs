//! Ends that look like the end of the run: their rows are held back until it is known.
//!
//! A machine that shuts down, `systemctl stop`, `scancel` and `kill -TERM -1` send one signal to
//! all processes, in any order. A job that dies of it before the run hears of it did not fail: it
//! was cut off with the run, has no row, and runs again with `--resume`. So a job that a signal
//! ended which is not ours waits for a moment. Its slot is free at once, and retries and halts are
//! decided at once; only its row and its output wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use minder::Outcome;
use minder::exec::Start;

use super::super::batch::Open;
use super::super::input::Task;
use super::super::job::Running;
use super::Hand;
use crate::input::Arguments;
use crate::report::Cause;

/// How long after such an end the run may be told to end: a machine that stops signals all within
/// some hundreds of milliseconds.
const HOLD: Duration = Duration::from_secs(1);
/// How many ends of one loop wait at most, with how many bytes in memory and how many open files.
/// Beyond that the oldest is written at once.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;
pub(in super::super) const HELD_FILES_MAX: usize = 16;

/// A job that is over and has no row yet.
pub(super) struct Held {
    due: Instant,
    start: Start,
    task: Task,
    running: Running,
    outcome: Outcome,
    cause: Cause,
    output: Open,
}

/// Those of one loop, the oldest first.
pub(super) type Queue = VecDeque<Held>;

impl Hand<'_> {
    /// Whether the end of a job, which has no further attempt, is to be held back.
    pub(super) fn is_to_hold(&self, running: &Running, outcome: &Outcome) -> bool {
        minder::os::may_be_told_to_end(outcome.exit.status)
            && !outcome.killed
            && !running.torn
            && !self.shared.crew.is_cancelled()
    }

    /// Holds the end of a job back.
    pub(super) fn hold(
        &mut self,
        start: Start,
        task: &Task,
        mut running: Running,
        outcome: Outcome,
        cause: Cause,
    ) {
        running.held = true;
        // What is shown as it comes goes to no other job meanwhile.
        self.shared.stage.gather();
        let columns = Arguments::Columns(task.columns().to_vec());
        let task = Task::new(task.number, columns);
        let output = self.batch.take_open();
        let due = Instant::now() + HOLD;
        self.held.push_back(Held { due, start, task, running, outcome, cause, output });
        while self.holds_too_much() {
            self.release_first();
        }
    }

    fn holds_too_much(&self) -> bool {
        let sum = |of: fn(&Held) -> usize| self.held.iter().map(of).sum::<usize>();
        self.held.len() > HELD_MAX
            || sum(|held| held.output.len()) > HELD_BYTES_MAX
            || sum(|held| held.output.files() + held.running.files_open()) > HELD_FILES_MAX
    }

    /// Writes all of them down.
    pub(super) fn release_all(&mut self) {
        while !self.held.is_empty() {
            self.release_first();
        }
    }

    /// When the next end was held long enough.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held.front().map(|held| held.due)
    }

    /// Writes down the ends that were held long enough, or all of them: the run ends, and they with
    /// it.
    pub(super) fn release(&mut self) {
        let now = Instant::now();
        while self.held.front().is_some_and(|held| held.due <= now || self.shared.is_told_to_end()) {
            self.release_first();
        }
    }

    fn release_first(&mut self) {
        let Some(held) = self.held.pop_front() else { return };
        let Held { start, task, mut running, outcome, cause, output, .. } = held;
        self.batch.put_open(output);
        self.end(start, &task, &mut running, &outcome, cause);
        // What goes to files was closed, and is open again.
        if self.batch.is_full(self.slots) {
            self.flush();
        }
        // After it was gathered anew: there is no moment in which another may claim the stage.
        self.shared.stage.gathered_twice();
    }
}
