//! Shows a run to its user: notices, the progress display and the summary, all on standard error.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;
use minder_runner::report::{FailureReason, JobEnd};
use minder_runner::text::time;
use minder_runner::{Notice, Observer, RunEnd, RunReport, Snapshot};

use crate::config::{Display, flags_behind_program};
use crate::flags::StatusLevel;
use crate::ui::write_stderr;
use crate::ui::{
    EndedCount, JobLines, Progress, SlowJobs, Summary, command_message, failure_text, message, notify,
    styled_message, try_to,
};
use minder_ui::color::{Palette, can_draw};
use minder_ui::symbols::Symbols;
use minder_ui::table::escape;

/// The interval between two checks for slow jobs.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum number of running jobs that a display names.
const NAMED_MAX: usize = 8;

/// Prints the reports of the engine.
#[derive(Debug)]
pub(super) struct Console {
    display: Display,
    /// The command of the run, for a notification.
    name: String,
    /// The command, if a word that looks like a flag follows its program.
    command: Vec<OsString>,
    palette: Palette,
    progress: Progress,
    slow: Option<Mutex<SlowCheck>>,
    /// The number of jobs with a line, where all jobs have one.
    ended: AtomicU64,
}

/// The check for jobs that run far longer than the others.
#[derive(Debug)]
struct SlowCheck {
    jobs: SlowJobs,
    /// The time of the next check; `None` once enough jobs were named.
    next: Option<Instant>,
}

impl Console {
    /// Creates the console of a run of this command.
    pub(super) fn new(display: Display, command: &[OsString]) -> Self {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let name = minder_runner::text::shorten(&words.join(" "));
        let palette = Palette::stderr(display.color);
        let progress = Progress::new(display.progress, palette, !display.straight);
        let is_watched =
            stderr().is_terminal() || display.progress.jobs || display.status_level >= StatusLevel::Slow;
        let slow = (is_watched && !display.quiet).then(|| {
            let next = Some(Instant::now() + SLOW_CHECK_INTERVAL);
            Mutex::new(SlowCheck { jobs: SlowJobs::default(), next })
        });
        let has_flag = command.get(1).is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
        let command = if has_flag && !display.parallel { command.to_vec() } else { Vec::new() };
        Self { display, name, command, palette, progress, slow, ended: AtomicU64::new(0) }
    }

    /// Returns the progress display.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Notifies the user of the end of a long run, except of one that the user ended.
    fn notify_end(&self, report: &RunReport) {
        let is_due = self.display.notify.is_some_and(|min| report.elapsed >= min);
        if is_due && !matches!(report.end, RunEnd::Signal(_) | RunEnd::StdoutClosed | RunEnd::Detached) {
            let symbols = Symbols::of_locale();
            let text = match &report.end {
                RunEnd::Failed(error) | RunEnd::InputFailed(error) => escape(error.as_bytes()),
                _ => Summary { report, width: None }.first_line(),
            };
            notify(&symbols.convert(&format!("minder: {}", self.name)), &symbols.convert(&text));
        }
    }

    /// Prints a line of this level, if it is wanted. `new` has the number of jobs that have ended since the
    /// last line.
    fn print_job_line(&self, level: StatusLevel, new: EndedCount, format: impl Fn(JobLines) -> String) {
        if self.display.status_level < level {
            return;
        }
        let width = terminal_columns();
        let count = (self.display.status_level >= StatusLevel::Pass).then(|| EndedCount {
            ended: self.ended.fetch_add(new.ended, Ordering::Relaxed) + new.ended,
            ..new
        });
        let line = format(JobLines { palette: self.palette, symbols: Symbols::of_locale(), width, count });
        self.progress.suspend(|| command_message(&line));
    }

    /// Prints what GNU parallel prints about a job that timed out, or that `--halt` counts.
    fn report_end(&self, end: &JobEnd) {
        let Some(reports) = self.display.reports else { return };
        if end.is_cut_off {
            return;
        }
        let failure = end.failure.as_ref();
        if matches!(failure, Some(FailureReason::TimedOut(_))) {
            self.report_time_out(end);
        }
        if let (true, Some(command)) = (reports.halts_on(failure), &end.command) {
            self.progress.suspend(|| {
                message(&format!("This job {}:", reports.result()));
                command_message(command);
            });
        }
    }

    fn report_time_out(&self, end: &JobEnd) {
        let (Some(_), Some(command)) = (self.display.reports, &end.command) else { return };
        self.progress.suspend(|| {
            message("Warning: This job was killed because it timed out:");
            message(&format!("Warning: {command}"));
        });
    }

    fn check_slow_jobs(&self, take: &dyn Fn(usize) -> Snapshot) {
        let Some(slow) = &self.slow else { return };
        let mut slow = slow.lock();
        let now = Instant::now();
        if slow.next.is_none_or(|next| next > now) {
            return;
        }
        let snapshot = take(NAMED_MAX);
        let ages = snapshot.running.iter().map(|job| (job.job, job.age));
        let name = |number: u64| {
            let job = snapshot.running.iter().find(|job| job.job == number);
            job.map(|job| job.name.clone()).unwrap_or_default()
        };
        for line in slow.jobs.check(ages, snapshot.median, name) {
            self.progress.suspend(|| try_to(|| message(&line)));
        }
        slow.next = (!slow.jobs.is_exhausted()).then(|| now + SLOW_CHECK_INTERVAL);
    }

    /// Prepares the terminal for the last messages after jobs that wrote to it directly: they may have left
    /// a color or an incomplete line, which minder did not see. As many spaces as a line is wide lead from
    /// an incomplete line into the next one, and within an empty line.
    fn leave_unseen_output(&self) {
        if self.display.straight && can_draw() {
            let width = terminal_size::terminal_size_of(stderr()).map_or(0, |(width, _)| width.0.into());
            let text = format!("\x1b[0m{}\r\x1b[K", " ".repeat(width));
            write_stderr(text.as_bytes());
        }
    }
}

/// Returns the number of columns of the terminal on stderr. The last one stays free, as in the progress
/// display.
fn terminal_columns() -> Option<usize> {
    let size = stderr().is_terminal().then(|| terminal_size::terminal_size_of(stderr())).flatten();
    size.map(|(width, _)| usize::from(width.0).saturating_sub(1)).filter(|columns| *columns > 0)
}

impl Observer for Console {
    fn notice(&self, notice: &Notice) {
        if self.display.quiet && notice.is_suppressed_by_quiet() {
            return;
        }
        // GNU parallel is silent while it reads, and the stderr of scripts is compared and mailed.
        if self.display.parallel && *notice == Notice::ReadingAllInput && !stderr().is_terminal() {
            return;
        }
        // Only the users of GNU parallel expect these.
        if !self.display.parallel && matches!(notice, Notice::Halting { .. } | Notice::BlockGrew { .. }) {
            return;
        }
        let line = notice.to_string();
        match notice {
            // The main thread must not wait for a thread whose write blocks.
            Notice::Interrupted { .. } => self.progress.try_suspend(|| try_to(|| message(&line))),
            _ => self.progress.suspend(|| message(&line)),
        }
    }

    fn command(&self, line: &str) {
        self.progress.suspend(|| command_message(line));
    }

    fn wants_job_end(&self, succeeded: bool) -> bool {
        let level = if succeeded { StatusLevel::Pass } else { StatusLevel::Fail };
        self.display.status_level >= level || self.display.reports.is_some()
    }

    fn wants_command(&self, failure: Option<&FailureReason>) -> bool {
        self.display.reports.is_some_and(|reports| reports.includes(failure))
    }

    fn job_ended(&self, end: &JobEnd) {
        let level = match &end.failure {
            _ if end.is_cut_off => StatusLevel::All,
            Some(_) => StatusLevel::Fail,
            None => StatusLevel::Pass,
        };
        self.report_end(end);
        let new = EndedCount { ended: u64::from(!end.is_cut_off), total: end.total };
        self.print_job_line(level, new, |lines| lines.ended(end));
    }

    fn job_retried(&self, end: &JobEnd, attempt: u32, attempts_max: Option<u32>) {
        if matches!(end.failure, Some(FailureReason::TimedOut(_))) {
            self.report_time_out(end);
        }
        let new = EndedCount { ended: 0, total: end.total };
        self.print_job_line(StatusLevel::Retry, new, |lines| lines.retried(end, attempt, attempts_max));
    }

    fn final_output(&self, end: &JobEnd) {
        if !self.display.quiet {
            let result = match &end.failure {
                _ if end.is_cut_off => format!("cut off, {}", time(end.wall)),
                Some(failure) => failure_text(failure),
                None => "ok".to_owned(),
            };
            self.progress.suspend(|| message(&format!("output of `{}` ({result}):", end.name)));
        }
    }

    fn suspend_display(&self, bytes: &[u8], write: &mut dyn FnMut()) {
        self.progress.write_output(bytes, write);
    }

    fn try_suspend_display(&self, act: &mut dyn FnMut()) {
        self.progress.try_suspend(act);
    }

    fn wants_snapshots(&self) -> bool {
        self.progress.is_wanted() || self.slow.is_some()
    }

    fn wants_total(&self) -> bool {
        self.progress.is_wanted() || self.display.status_level >= StatusLevel::Pass
    }

    fn wants_history(&self) -> bool {
        self.display.progress.is_requested()
    }

    fn next_snapshot(&self, elapsed: Duration) -> Option<Duration> {
        let slow = self.slow.as_ref().and_then(|slow| {
            let next = slow.lock().next?;
            Some(next.saturating_duration_since(Instant::now()))
        });
        [self.progress.due(elapsed), slow].into_iter().flatten().min()
    }

    fn snapshot(&self, elapsed: Duration, take: &dyn Fn(usize) -> Snapshot) {
        let names_max = if self.display.progress.jobs { NAMED_MAX } else { 1 };
        self.progress.draw(elapsed, || take(names_max));
        self.check_slow_jobs(take);
    }

    fn finished(&self, report: &RunReport) {
        self.progress.finish();
        self.leave_unseen_output();
        let width = terminal_columns().map(|columns| columns.saturating_sub("minder: ".len()));
        let summary = Summary { report, width };
        match &report.end {
            RunEnd::Signal(_) if !self.display.quiet => {
                for line in summary.lines(self.palette).iter().chain(&summary.resume_line()) {
                    try_to(|| styled_message(line));
                }
            }
            RunEnd::Failed(error) => {
                let is_start = error.starts_with("cannot run `");
                match is_start.then(|| flags_behind_program(&self.command)).flatten() {
                    Some(hint) => message(&format!("{error}; {hint}")),
                    None => message(error),
                }
            }
            RunEnd::InputFailed(error) => {
                message(error);
                let has_run_jobs = !report.stats.wall.is_zero();
                // GNU parallel prints no summary.
                if has_run_jobs && !self.display.quiet && !self.display.parallel {
                    summary.lines(self.palette).iter().for_each(|line| styled_message(line));
                    summary.resume_line().iter().for_each(|line| styled_message(line));
                }
            }
            // GNU parallel prints no summary: a program that reads its stderr must not get one.
            RunEnd::Status(_) if !self.display.quiet && !report.nothing_left => {
                let is_wanted = summary.is_wanted() && (!self.display.parallel || stderr().is_terminal());
                if is_wanted || self.display.progress.is_requested() {
                    summary.lines(self.palette).iter().for_each(|line| styled_message(line));
                }
            }
            // Output may be lost, and nothing else says so.
            RunEnd::Status(_) if self.display.quiet && !self.display.parallel => {
                summary.leaked_lines().iter().for_each(|line| styled_message(line.trim_start()));
            }
            RunEnd::Detached if !self.display.quiet => {
                let run = report.run.as_deref().unwrap_or_default();
                message(&format!("detached from run {run}, whose agents continue (minder attach {run})"));
            }
            RunEnd::Status(_) | RunEnd::Signal(_) | RunEnd::StdoutClosed | RunEnd::Detached => (),
        }
        self.notify_end(report);
    }
}
