//! `--interactive`: each job is confirmed before it may run.

use std::ffi::OsString;
use std::fmt;

use minder_template::{Job, Template};

/// Asks whether a job may run.
///
/// It is called on the thread that reads the input, one job at a time, and may block.
pub trait Confirm: fmt::Debug + Send {
    /// Returns `true` if the job with this command line may run. If there is no answer, it may not. While it
    /// waits, it asks `is_cancelled` ten times a second, and gives up.
    fn confirm(&mut self, command: &str, is_cancelled: &dyn Fn() -> bool) -> bool;
}

/// Confirms the jobs of one run by their command lines.
#[derive(Debug)]
pub(crate) struct ConfirmPrompt {
    template: Template,
    confirm: Box<dyn Confirm>,
}

impl ConfirmPrompt {
    pub(crate) fn new(template: &Template, confirm: Box<dyn Confirm>) -> Self {
        Self { template: template.clone(), confirm }
    }

    /// Returns `true` if the job may run.
    pub(crate) fn confirm(
        &mut self,
        number: u64,
        columns: &[OsString],
        is_cancelled: &dyn Fn() -> bool,
    ) -> bool {
        let job = Job { columns, number, ..Job::default() };
        self.confirm.confirm(&self.template.display(&job), is_cancelled)
    }
}
