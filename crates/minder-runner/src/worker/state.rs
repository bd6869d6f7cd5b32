//! The state of one worker thread.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use minder::jobs::Attempt;

use super::held_queue::HeldQueue;
use super::job_values::job_values;
use super::running_job::RunningJob;
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
    /// The running jobs, indexed by slot.
    pub(super) running: Vec<Option<RunningJob>>,
    /// The slots of the jobs of this worker thread, by job number. With this map and the sets
    /// below, a wait costs as much as there is waiting work, not as much as there are running jobs.
    pub(super) slot_of_job: HashMap<u64, usize>,
    /// Slots of jobs whose lines wait for the screen, whose standard input waits for the reader,
    /// and that have no time-out yet. Slots of finished jobs are skipped when a set is used.
    pub(super) blocked_lines: BTreeSet<usize>,
    pub(super) starved_stdin: BTreeSet<usize>,
    pub(super) without_timeout: BTreeSet<usize>,
    pub(super) slots: usize,
    pub(super) line_max: usize,
    /// How many files were created for jobs to write to.
    pub(super) spool_count: u64,
    /// The number of submitted jobs when the other worker thread was last woken for its only job.
    pub(super) woken_for: u64,
    pub(super) index: usize,
    /// The permission to run for the job that is being started.
    pub(super) permit: Option<JobPermit>,
    /// The median on which the current time-outs are based.
    pub(super) median: Option<Duration>,
}

impl<'a> RunWorker<'a> {
    pub(crate) fn new(context: &'a RunContext<'a>, batch: OutputBatch, index: usize, workers: usize) -> Self {
        Self {
            context,
            batch,
            events: PendingEvents::default(),
            stats: RunStats::default(),
            held: HeldQueue::new(),
            running: Vec::new(),
            slot_of_job: HashMap::new(),
            blocked_lines: BTreeSet::new(),
            starved_stdin: BTreeSet::new(),
            without_timeout: BTreeSet::new(),
            slots: context.slots.div_ceil(workers),
            line_max: line_max(context.config.buffer, context.slots),
            spool_count: 0,
            woken_for: 0,
            index,
            permit: None,
            median: None,
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

    pub(super) fn running_mut(&mut self, attempt: Attempt) -> Option<&mut RunningJob> {
        self.slot_mut(attempt.slot as usize)
    }

    pub(super) fn slot_mut(&mut self, slot: usize) -> Option<&mut RunningJob> {
        self.running.get_mut(slot)?.as_mut()
    }

    /// Removes a job from this worker thread and returns it.
    pub(super) fn take_running(&mut self, attempt: Attempt) -> Option<RunningJob> {
        let running = self.running.get_mut(attempt.slot as usize)?.take()?;
        self.slot_of_job.remove(&running.number);
        Some(running)
    }
}
