//! Finished jobs whose events are held back.

use std::collections::VecDeque;
use std::time::Instant;

use minder::Outcome;
use minder::jobs::Attempt;

use super::running_job::RunningJob;
use crate::output::batch::UnfinishedOutput;
use crate::queue::Task;
use crate::report::EndCause;

/// The most files that the held jobs of one worker thread keep open. Beyond that the oldest job is
/// recorded at once.
pub(crate) const HELD_FILES_MAX: usize = 16;

/// A finished job that has no event yet.
pub(crate) struct HeldFinish {
    pub(super) due: Instant,
    /// How much of the queues of the standard streams has to be written before the job is recorded: its
    /// output is there, and nowhere else.
    pub(super) queued: Option<[u64; 2]>,
    pub(super) attempt: Attempt,
    pub(super) task: Task,
    pub(super) running: Box<RunningJob>,
    pub(super) outcome: Outcome,
    pub(super) cause: EndCause,
    pub(super) output: UnfinishedOutput,
}

/// The held jobs of one worker thread, oldest first.
pub(crate) type HeldQueue = VecDeque<HeldFinish>;
