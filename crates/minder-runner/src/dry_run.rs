//! `--dry-run`: the command lines of a run, without running any.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use minder_template::{ErrorKind, Job};

use crate::config::RunConfig;
use crate::input::{ArgumentReader, JobArgs};
use crate::job_source::job_source;
use crate::notice::Notice;
use crate::observer::Observer;
use crate::output::decorate::LineStyle;
use crate::queue::{JobQueue, Task};
use crate::recorder::ResumeState;
use crate::results::{cannot_write, create_output_file};

/// Writes the command line of each job to `out`, one a line. Returns how many jobs cannot be run;
/// each is reported to `observer`.
///
/// # Errors
/// The input cannot be read, or `out` cannot be written.
pub fn list_commands(
    mut config: RunConfig,
    arguments: ArgumentReader,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<u64> {
    config.record.keep = false;
    // What agents that still work will have done is not known.
    config.record.agents = None;
    let resumed = ResumeState::read(&config, observer)?;
    if let Some(notice) = resumed.filter.announcement(&config.record, arguments.total()) {
        observer.notice(&notice);
    }
    if resumed.filter.has_nothing_left()
        && let Some(notice) = resumed.filter.nothing_notice(&config.record)
    {
        observer.notice(&notice);
    }
    // A block may be a share of a file for each slot.
    let slots = config.slots.now()?.unwrap_or(1);
    let source = job_source(&config, arguments, slots, None, observer)?;
    let queue = JobQueue::open(source, resumed.filter, config.total, None);
    let mut refused = 0;
    queue.for_each_job(|task| {
        let runs = list_command(&config, &queue, &task, observer, out)?;
        refused += u64::from(!runs);
        Ok(())
    })?;
    Ok(refused)
}

/// Writes one command line. Returns `false` if the job cannot be run.
fn list_command(
    config: &RunConfig,
    queue: &Arc<JobQueue>,
    task: &Task,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<bool> {
    let number = task.number;
    if let JobArgs::Unfit(why) = &task.item {
        observer.notice(&Notice::CannotRun { job: format!("job {number}"), reason: why.to_string() });
        return Ok(false);
    }
    let job = Job { columns: task.columns(), number, total: queue.total(), ..Job::default() };
    match config.template.argv(&job) {
        Ok(_) => {
            let mut line = config.template.display(&job);
            if config.pipe.as_ref().is_some_and(|pipe| pipe.print_blocks)
                && let Some(block) = task.block().as_ref().and_then(|block| block.as_shell())
            {
                line = format!("{block} |({line})");
            }
            line.push('\n');
            // As in GNU parallel, the line is the output that `--files` saves.
            if config.files.names && config.files.gnu_names && config.files.results.is_none() {
                let (mut file, path) =
                    create_output_file(&config.files, number, None).map_err(anyhow::Error::msg)?;
                file.write_all(line.as_bytes())
                    .map_err(|error| anyhow::Error::msg(cannot_write(&path, &error)))?;
                line = format!("{}\n", path.display());
            }
            match LineStyle::of(config, &job) {
                Some(style) => out.write_all(&style.apply(line.as_bytes()))?,
                None => out.write_all(line.as_bytes())?,
            }
            Ok(true)
        }
        // The same for every job.
        Err(error) if error.kind() == ErrorKind::Column => Err(error.into()),
        Err(error) => {
            let job = config.template.display_escaped(&job);
            observer.notice(&Notice::CannotRun { job, reason: error.to_string() });
            Ok(false)
        }
    }
}
