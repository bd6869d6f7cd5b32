//! Decides which jobs run when a run is resumed.

use std::ffi::OsString;
use std::ops::Range;

use crate::config::ResumeMode;
use crate::text::count;
use minder_record::event::OsBytes;
use minder_record::run_state::{JobSet, RunState};

/// The jobs of earlier attempts.
#[derive(Debug, Default)]
pub(crate) struct ResumeFilter {
    mode: Option<ResumeMode>,
    progress: RunState,
}

impl ResumeFilter {
    pub(crate) fn new(mode: ResumeMode, progress: RunState) -> Self {
        Self { mode: Some(mode), progress }
    }

    /// Returns `true` if the job does not run in this attempt.
    pub(crate) fn skips(&self, job: u64) -> bool {
        let done = &self.progress.done;
        let failed = &self.progress.failed;
        match self.mode {
            None => false,
            Some(ResumeMode::Rest) => done.contains(job),
            Some(ResumeMode::RestAndFailed) => done.contains(job) && !failed.contains(job),
            Some(ResumeMode::Failed) => !failed.contains(job),
        }
    }

    /// Returns the last job that may be skipped by its recorded state. With `ResumeMode::Failed`,
    /// later jobs are skipped as well, one by one.
    pub(crate) fn last(&self) -> u64 {
        self.done().last().unwrap_or(0)
    }

    /// Returns how many of the first `total` jobs do not run.
    pub(crate) fn skipped(&self, total: u64) -> u64 {
        match self.mode {
            None => 0,
            // Counted by ranges: there may be billions of jobs.
            Some(ResumeMode::Rest) => self.done().len_up_to(total),
            Some(ResumeMode::RestAndFailed) => {
                self.done().len_up_to(total).saturating_sub(self.progress.failed.len_up_to(total))
            }
            Some(ResumeMode::Failed) => total - self.progress.failed.len_up_to(total),
        }
    }

    /// Returns `true` if the arguments of a finished job differ from the recorded ones.
    pub(crate) fn differs(&self, job: u64, columns: &[OsString]) -> bool {
        let texts = || columns.iter().map(|value| OsBytes::from(value.as_os_str())).collect::<Vec<_>>();
        self.mode.is_some() && self.done().contains(job) && self.progress.differs(job, &texts())
    }

    /// Returns why the block of a job, whose bytes of the input are `range`, does not fit the
    /// recorded blocks: that of this job if it finished, otherwise that of the next finished one.
    pub(crate) fn block_mismatch(&self, job: u64, range: &Range<u64>) -> Option<String> {
        self.mode?;
        let changed = |why: String| Some(format!("block {job} of the input has changed: {why}"));
        let len = range.end - range.start;
        if self.done().contains(job) {
            let known = self.progress.block(job).filter(|known| known != range)?;
            return changed(format!(
                "it has {} at offset {}, and had {} at offset {}",
                count(len, "byte"),
                range.start,
                count(known.end - known.start, "byte"),
                known.start
            ));
        }
        let next = self.done().first_after(job)?;
        let known = self.progress.block(next).filter(|known| known.start < range.end)?;
        changed(format!("it ends at offset {}, and block {next} started at {}", range.end, known.start))
    }

    fn done(&self) -> &JobSet {
        &self.progress.done
    }
}
