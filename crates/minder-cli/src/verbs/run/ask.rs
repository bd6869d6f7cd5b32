//! `--interactive`: each job is asked for on the terminal before it may run.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};

use anyhow::{Context, Result};

use super::input::Task;
use crate::report::Progress;
use minder_template::{Job, Template};

/// Whoever asks. It has a thread of its own to wait on: that which reads the input.
#[derive(Debug)]
pub(super) struct ConfirmPrompt {
    template: Template,
    terminal: File,
    answers: BufReader<File>,
    progress: Progress,
}

impl ConfirmPrompt {
    /// Opens the terminal.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(template: &Template, progress: &Progress) -> Result<Self> {
        let terminal =
            minder_os::terminal::open_terminal().context("-p asks on the terminal, and there is none")?;
        let answers = BufReader::with_capacity(256, terminal.try_clone()?);
        Ok(Self { template: template.clone(), terminal, answers, progress: progress.clone() })
    }

    /// Whether the job may run: `y`, or `Y`, with whatever behind it. The end of the answers is a
    /// no to all that is left.
    pub(super) fn confirm(&mut self, task: &Task) -> bool {
        let job = Job { columns: task.columns(), number: task.number, ..Job::default() };
        let question = format!("{} ?...", self.template.display(&job));
        let Self { terminal, answers, progress, .. } = self;
        let mut answer = String::new();
        let asked = progress.suspend(|| {
            terminal.write_all(question.as_bytes()).and_then(|()| answers.read_line(&mut answer))
        });
        asked.is_ok() && answer.trim_start().starts_with(['y', 'Y'])
    }
}
