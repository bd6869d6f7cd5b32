//! From the arguments of a job to what is started.

use minder::exec::Start;
use minder::{Command, Delivery, Group, Size, SpawnOptions, Stdio, WhenFull};

use super::super::input::Task;
use super::super::job::Running;
use super::super::output::Own;
use super::super::results::Results;
use super::super::shared::Shared;
use super::{Hand, cannot_write};
use crate::plan::View;
use crate::report::reason;
use crate::template::Job;

/// The size of a job's own terminal where ours has none.
const TERMINAL: Size = Size { rows: 24, columns: 80 };

impl Hand<'_> {
    /// Prepares what a job needs beside its command.
    pub(super) fn prepare(
        &mut self,
        command: &mut Command,
        running: &mut Running,
        task: &Task,
    ) -> Result<SpawnOptions, String> {
        let plan = self.shared.plan;
        command.stdin(Stdio::Null).die_with_parent(true);
        if let Some(folder) = &plan.results {
            let made = Results::create(folder, task.columns(), running.number);
            running.results = Some(made.map_err(|error| cannot_write(folder, &error))?);
        }
        let options = SpawnOptions::default();
        if plan.pty {
            command.group(Group::Terminal(minder::os::terminal_size().unwrap_or(TERMINAL)));
        } else if plan.spool {
            let files = [self.spool(running)?, self.spool(running)?];
            let [out, err] = files.map(Stdio::from);
            command.stdout(out).stderr(err);
            return Ok(options);
        } else if plan.view == View::Straight {
            command.stdout(Stdio::Inherit).stderr(Stdio::Inherit);
            return Ok(options);
        } else {
            command.stdout(Stdio::Piped).stderr(Stdio::Piped);
        }
        running.live = match plan.view {
            View::Ordered => self.shared.stage.start(running.number),
            View::Grouped => {
                let alone = self.shared.degree == 1 || self.shared.input.total() == Some(1);
                alone && self.shared.stage.claim(running.number)
            }
            View::Lines | View::Straight => false,
        };
        Ok(match running.live || plan.view == View::Lines {
            true => options.delivery(Delivery::Live).when_full(WhenFull::Hold),
            false => options.delivery(Delivery::AtEnd).when_full(WhenFull::Spill).files(true),
        })
    }

    /// A file for a job to write to.
    pub(super) fn spool(&mut self, running: &mut Running) -> Result<std::fs::File, String> {
        let shared = self.shared;
        let folder = shared.book.folder();
        let made = match shared.book.name("spill", self.place) {
            None => minder::os::nameless_file(folder).map(|file| (file, None)),
            Some(name) => {
                self.spools += 1;
                let path = folder.join(format!("{name}-job{}", self.spools));
                minder::os::private_file(&path).map(|file| (file, Some(path)))
            }
        };
        let made = made
            .and_then(|(file, path)| Ok((file.try_clone()?, Own { file: Some(file), path, range: 0..0 })));
        let (file, own) = made.map_err(|error| {
            format!("cannot make a file for output in `{}`: {}", folder.display(), reason(&error))
        })?;
        running.spool.push(own);
        Ok(file)
    }
}

/// What a job puts into the template.
pub(super) fn job<'a>(shared: &Shared<'_>, task: &'a Task, start: Start) -> Job<'a> {
    Job {
        columns: task.columns(),
        number: task.number,
        slot: start.slot,
        total: shared.input.total(),
        slots: u32::try_from(shared.degree).ok(),
    }
}
