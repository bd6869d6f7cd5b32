//! Which jobs run when a run is taken up again.

use crate::journal::merge::{JobSet, Progress};
use crate::journal::row::Text;
use crate::plan::Mode;

/// What is known of earlier attempts.
#[derive(Debug, Default)]
pub(super) struct Again {
    mode: Option<Mode>,
    progress: Progress,
}

impl Again {
    pub(super) fn new(mode: Mode, progress: Progress) -> Self {
        Self { mode: Some(mode), progress }
    }

    /// Whether the job does not run this time.
    pub(super) fn skips(&self, job: u64) -> bool {
        let (done, failed) = (&self.progress.done, &self.progress.failed);
        match self.mode {
            None => false,
            Some(Mode::Rest) => done.contains(job),
            Some(Mode::RestAndFailed) => done.contains(job) && !failed.contains(job),
            Some(Mode::Failed) => !failed.contains(job),
        }
    }

    /// The last job that may be passed over; those behind it are passed over one by one, as they come.
    pub(super) fn last(&self) -> u64 {
        self.done().ranges().map(|(_, last)| last).last().unwrap_or(0)
    }

    /// How many of the first `total` jobs do not run.
    pub(super) fn skipped(&self, total: u64) -> u64 {
        match self.mode {
            None => 0,
            Some(_) => (1..=total).filter(|job| self.skips(*job)).count() as u64,
        }
    }

    /// Whether the argument of a job that ended is another now than it was.
    pub(super) fn differs(&self, job: u64, value: &std::ffi::OsStr) -> bool {
        self.mode.is_some() && self.done().contains(job) && self.progress.differs(job, &[Text::from(value)])
    }

    fn done(&self) -> &JobSet {
        &self.progress.done
    }
}
