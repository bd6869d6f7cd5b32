//! Decides which jobs run when a run is resumed.

use std::ffi::OsString;

use crate::attachment::{AgentOutput, Attachment};
use crate::config::{RecordConfig, ResumeMode};
use crate::notice::Notice;
use crate::splitter::InputBlock;
use crate::text::{count, shorten};
use minder_record::event::{KILLED, OsBytes};
use minder_record::job_set::JobSet;
use minder_record::run_state::RunState;

/// The jobs of earlier attempts.
#[derive(Debug, Default)]
pub(crate) struct ResumeFilter {
    mode: Option<ResumeMode>,
    progress: RunState,
    /// What agents have saved and no attempt has shown.
    agents: AgentOutput,
    /// The round whose results this attempt takes, and all jobs that it takes.
    attachment: Option<(Attachment, JobSet)>,
}

impl ResumeFilter {
    pub(crate) fn new(mode: ResumeMode, progress: RunState) -> Self {
        Self { mode: Some(mode), progress, ..Self::default() }
    }

    /// Makes the filter of an attempt at a run whose jobs run on agents.
    pub(crate) fn of_agents(
        mode: ResumeMode,
        progress: RunState,
        agents: AgentOutput,
        attachment: Option<Attachment>,
        skip_lost: bool,
    ) -> Self {
        let mut filter = Self { mode: Some(mode), progress, agents, attachment: None };
        if let Some(attachment) = attachment {
            let mut jobs = filter.left(attachment.spooled.jobs);
            let unshown = filter.agents.unshown.values().flat_map(JobSet::ranges);
            unshown.for_each(|(first, last)| jobs.insert_range(first, last));
            if !attachment.must_be_over {
                attachment.add_jobs(&mut jobs);
            }
            if skip_lost {
                filter.agents.lost.jobs().for_each(|job| _ = jobs.remove(job));
            }
            filter.attachment = Some((attachment, jobs));
        }
        filter
    }

    /// Returns the round whose results this attempt takes, and all jobs that it takes.
    pub(crate) fn attachment(&self) -> Option<&(Attachment, JobSet)> {
        self.attachment.as_ref()
    }

    /// Returns `true` if the job does not run in this attempt.
    pub(crate) fn skips(&self, job: u64) -> bool {
        let done = &self.progress.done;
        let failed = &self.progress.failed;
        match self.mode {
            None => false,
            Some(_) if let Some((_, jobs)) = &self.attachment => !jobs.contains(job),
            // Agents have run it, and the coordinator shows it in this attempt.
            Some(_) if self.progress.unshown_by_agents.contains(job) => false,
            Some(ResumeMode::Rest) => done.contains(job),
            Some(ResumeMode::RestAndFailed) => done.contains(job) && !failed.contains(job),
            Some(ResumeMode::Failed) => !failed.contains(job) && !self.progress.tried.contains(job),
        }
    }

    /// Returns the jobs whose output agents have saved, and which was not shown yet.
    pub(crate) fn agents(&self) -> &AgentOutput {
        &self.agents
    }

    /// Returns whether an earlier attempt has taken the result that agents have of a job.
    pub(crate) fn was_taken(&self, job: u64) -> bool {
        let is_taken_now = self.attachment.as_ref().is_some_and(|(attachment, jobs)| {
            !attachment.must_be_over && jobs.contains(job) && !attachment.shown.contains(job)
        });
        self.done().contains(job) && !self.progress.unshown_by_agents.contains(job) && !is_taken_now
    }

    /// Returns how many jobs have failed in earlier attempts.
    pub(crate) fn failed(&self) -> u64 {
        self.progress.failed.len()
    }

    /// Returns which of the first `total` jobs run in this attempt.
    pub(crate) fn left(&self, total: u64) -> JobSet {
        let RunState { done, failed, tried, .. } = &self.progress;
        let mut left = JobSet::default();
        if self.mode != Some(ResumeMode::Failed) {
            let mut next = 1;
            for (first, last) in done.ranges() {
                left.insert_range(next, first.saturating_sub(1).min(total));
                next = last.saturating_add(1);
            }
            left.insert_range(next, total);
        }
        match self.mode {
            Some(ResumeMode::RestAndFailed) => failed.jobs().for_each(|job| _ = left.insert(job)),
            Some(ResumeMode::Failed) => {
                failed.jobs().chain(tried.jobs()).for_each(|job| _ = left.insert(job))
            }
            _ => (),
        }
        left
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
            Some(ResumeMode::Failed) => {
                total - self.progress.failed.len_up_to(total) - self.progress.tried.len_up_to(total)
            }
        }
    }

    /// Returns `true` if the record shows that no job is left to run.
    pub(crate) fn has_nothing_left(&self) -> bool {
        match self.mode {
            None => false,
            Some(ResumeMode::Rest) => self.progress.is_complete(),
            Some(ResumeMode::RestAndFailed) => self.progress.is_complete() && self.progress.failed.is_empty(),
            Some(ResumeMode::Failed) => self.progress.failed.is_empty() && self.progress.tried.is_empty(),
        }
    }

    /// Returns why jobs are left after an attempt that ran only failed jobs, and how many, if it is
    /// known: such an attempt changes neither. `total` is the number of all jobs.
    pub(crate) fn left_by_retry(&self, total: Option<u64>) -> Option<(String, Option<u64>)> {
        let left = total.map(|total| total.saturating_sub(self.done().len()));
        if self.mode != Some(ResumeMode::Failed) || left == Some(0) {
            return None;
        }
        let why = match &self.progress.finished {
            Some(finished) => finished.why.clone()?,
            None => KILLED.to_owned(),
        };
        Some((why, left))
    }

    /// Returns the line about the run that is resumed, if it is to be named and a job is left. `total`
    /// is the number of its jobs, if it is known.
    pub(crate) fn announcement(&self, record: &RecordConfig, total: Option<u64>) -> Option<Notice> {
        if self.has_nothing_left() {
            return None;
        }
        let (run, command) = named_run(record)?;
        let spooled = self.attachment.as_ref().map(|(attachment, _)| attachment.spooled);
        let total = total.or(spooled.filter(|count| count.has_ended).map(|count| count.jobs));
        let begun = if record.coordination.attaches { "attached to" } else { "resuming" };
        let line = match (self.mode?, total) {
            (ResumeMode::Failed, total) => {
                let all = total.map(|total| format!(" of {total}")).unwrap_or_default();
                let failed = self.progress.failed.len() + self.progress.tried.len();
                format!("retrying {run}: {command} ({failed}{all} failed)")
            }
            (_, Some(total)) => {
                let left = total.saturating_sub(self.skipped(total));
                format!("{begun} {run}: {command} ({left} of {total} left)")
            }
            (_, None) => format!("{begun} {run}: {command} ({} finished)", count(self.done().len(), "job")),
        };
        Some(Notice::Resumption { line })
    }

    /// Returns the line about an attempt that ran no job.
    pub(crate) fn nothing_notice(&self, record: &RecordConfig) -> Option<Notice> {
        let retries = self.mode == Some(ResumeMode::Failed);
        let (run, command) = match named_run(record) {
            Some(named) if self.has_nothing_left() => named,
            _ => return retries.then_some(Notice::NothingToRetry),
        };
        let jobs = count(self.done().len(), "job");
        let verb = if record.coordination.attaches { "attach to" } else { "resume" };
        let line = match self.progress.failed.len() {
            _ if retries && !self.progress.is_complete() => format!(
                "nothing to retry: no job of run {run} has failed: {command} ({jobs}, not complete: minder \
                 resume {run})"
            ),
            _ if retries => format!("nothing to retry: no job of run {run} has failed: {command} ({jobs})"),
            0 => format!("nothing to {verb}: run {run} is complete: {command} ({jobs})"),
            failed => format!(
                "nothing to {verb}: run {run} is complete: {command} ({jobs}, {failed} failed: minder retry \
                 {run})"
            ),
        };
        Some(Notice::Resumption { line })
    }

    /// Returns `true` if the arguments of a finished job differ from the recorded ones.
    pub(crate) fn differs(&self, job: u64, columns: &[OsString]) -> bool {
        let texts = || columns.iter().map(|value| OsBytes::from(value.as_os_str())).collect::<Vec<_>>();
        self.mode.is_some() && self.done().contains(job) && self.progress.differs(job, &texts())
    }

    /// Returns why the block of a job does not fit the recorded blocks: that of this job if it
    /// finished, otherwise that of the next finished one.
    pub(crate) fn block_mismatch(&self, job: u64, block: &InputBlock) -> Option<String> {
        let InputBlock { range, checksum } = block;
        self.mode?;
        let changed = |why: String| Some(format!("block {job} of the input has changed: {why}"));
        let len = range.end - range.start;
        if self.done().contains(job) {
            let known = self.progress.block(job)?;
            if known == *range {
                let differs =
                    self.progress.block_checksum(job).zip(*checksum).is_some_and(|(old, new)| old != new);
                let text =
                    || format!("the contents of its {} at offset {} differ", count(len, "byte"), range.start);
                return if differs { changed(text()) } else { None };
            }
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

    /// Returns the jobs that have finished.
    fn done(&self) -> &JobSet {
        &self.progress.done
    }
}

/// Returns the id and the command of the run that is resumed, if it is to be named.
fn named_run(record: &RecordConfig) -> Option<(String, String)> {
    if !record.announces {
        return None;
    }
    let run = record.run.as_ref()?.file_name()?;
    let command: Vec<_> = record.command.iter().map(|word| word.to_string_lossy()).collect();
    Some((run.to_string_lossy().into_owned(), shorten(&command.join(" "))))
}
