//! The state of one worker thread.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use minder::jobs::Attempt;

use super::held_queue::HeldQueue;
use super::job_values::job_values;
use super::running_jobs::RunningJobs;
use crate::admission::JobPermit;
use crate::commit::PendingEvents;
use crate::context::RunContext;
use crate::input::JobArgs;
use crate::output::batch::OutputBatch;
use crate::output::line_buffer::line_max;
use crate::queue::Task;
use crate::report::RunStats;
use crate::text::shorten;

/// One worker thread of a run. Only that thread uses it; everything shared is in `context`.
pub(crate) struct RunWorker<'a> {
    pub(super) context: &'a RunContext<'a>,
    pub(super) batch: OutputBatch,
    /// Encoded events of the jobs in the batch.
    pub(super) events: PendingEvents,
    pub(super) stats: RunStats,
    /// Finished jobs whose events are held back.
    pub(super) held: HeldQueue,
    pub(super) running: RunningJobs,
    pub(super) slots: usize,
    pub(super) line_max: usize,
    /// How many files were created for jobs to write to.
    pub(super) spool_count: u64,
    /// The number of submitted jobs when the other worker thread was last woken for its only job.
    pub(super) woken_for: u64,
    pub(super) index: usize,
    /// Whether the job that ended last succeeded, until the halt policy was looked at.
    pub(super) last_success: Option<bool>,
    /// The permission to run for the job that is being started.
    pub(super) permit: Option<JobPermit>,
    /// The changes of the terminal's size that the running jobs have seen.
    pub(super) resizes: u64,
    /// Since when no job of a stream could be started, because the system was short of something.
    pub(super) short_since: Option<Instant>,
    /// The median on which the current time-outs are based.
    pub(super) median: Option<Duration>,
    /// With `--verbose`, the printed command lines of jobs that did not start, by the number of the job.
    pub(super) printed: BTreeMap<u64, String>,
    /// How many jobs of this worker thread count in [`RunStatus::unread`](crate::context::RunStatus::unread).
    pub(super) unread: usize,
}

impl<'a> RunWorker<'a> {
    pub(crate) fn new(context: &'a RunContext<'a>, batch: OutputBatch, index: usize, workers: usize) -> Self {
        Self {
            context,
            batch,
            events: PendingEvents::default(),
            stats: RunStats::default(),
            held: HeldQueue::new(),
            running: RunningJobs::default(),
            slots: context.slots.div_ceil(workers),
            line_max: line_max(context.config.buffer, context.slots),
            spool_count: 0,
            woken_for: 0,
            index,
            last_success: None,
            permit: None,
            resizes: 0,
            short_since: None,
            median: None,
            printed: BTreeMap::new(),
            unread: 0,
        }
    }
}

impl RunWorker<'_> {
    pub(super) fn name(&self, attempt: Attempt, task: &Task) -> String {
        match &task.item {
            JobArgs::Columns(_) => shorten(&self.context.config.template.display_escaped(&job_values(
                self.context,
                task,
                attempt,
            ))),
            JobArgs::Unfit(_) => format!("job {}", task.number),
        }
    }
}
