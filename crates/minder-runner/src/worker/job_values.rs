//! The values that a job puts into the templates of a run.

use minder::jobs::Attempt;
use minder_template::Job;

use crate::context::RunContext;
use crate::queue::Task;

/// Returns the values that a job puts into a template.
pub(crate) fn job_values<'a>(context: &RunContext<'_>, task: &'a Task, attempt: Attempt) -> Job<'a> {
    Job { slot: attempt.slot, ..waiting_job_values(context, task) }
}

/// Returns the values of a job that waits: it has no slot.
pub(crate) fn waiting_job_values<'a>(context: &RunContext<'_>, task: &'a Task) -> Job<'a> {
    Job {
        columns: task.columns(),
        number: task.number,
        slot: 0,
        total: context.queue.total(),
        slots: u32::try_from(context.slots).ok(),
    }
}
