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

/// One loop's worker.
pub(crate) struct RunWorker<'a> {
    pub(super) context: &'a RunContext<'a>,
    pub(super) batch: OutputBatch,
    /// Events of the jobs in the batch.
    pub(super) events: PendingEvents,
    pub(super) stats: RunStats,
    /// Ends whose rows wait.
    pub(super) held: HeldQueue,
    /// By slot.
    pub(super) running: Vec<Option<RunningJob>>,
    /// The slots of the jobs that run here, by number. With these lists a wait costs what waits,
    /// not what runs.
    pub(super) slot_of_job: HashMap<u64, usize>,
    /// Slots of jobs with lines that wait for the screen, that are to be fed again, and that have
    /// no time-out yet. What ended meanwhile is passed over.
    pub(super) blocked_lines: BTreeSet<usize>,
    pub(super) starved_stdin: BTreeSet<usize>,
    pub(super) without_timeout: BTreeSet<usize>,
    pub(super) slots: usize,
    pub(super) line_max: usize,
    /// How many files were made for jobs to write to.
    pub(super) spool_count: u64,
    /// How many jobs there had been when the other loop was last told that its job is the only one.
    pub(super) woken_for: u64,
    pub(super) index: usize,
    /// What allows the job that is being started.
    pub(super) permit: Option<JobPermit>,
    /// The median that time-outs were set by.
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

    /// The job runs here no longer.
    pub(super) fn take_running(&mut self, attempt: Attempt) -> Option<RunningJob> {
        let running = self.running.get_mut(attempt.slot as usize)?.take()?;
        self.slot_of_job.remove(&running.number);
        Some(running)
    }
}
