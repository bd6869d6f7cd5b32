//! What a job puts into the templates of a run.

use minder::jobs::Attempt;
use minder_template::Job;

use crate::context::RunContext;
use crate::queue::Task;

/// Returns what a job puts into a template.
pub(crate) fn job_values<'a>(shared: &RunContext<'_>, task: &'a Task, start: Attempt) -> Job<'a> {
    Job {
        columns: task.columns(),
        number: task.number,
        slot: start.slot,
        total: shared.queue.total(),
        slots: u32::try_from(shared.slots).ok(),
    }
}
