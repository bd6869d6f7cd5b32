//! The summary at the end of a run: how many jobs ran, their CPU time, and which ones failed.

use std::io::{IsTerminal, stderr};

use minder::ExitStatus;
use minder::jobs::JobCounts;
use minder_runner::report::{FailureReason, HaltSummary, JobFailure, NAMED_MAX};
use minder_runner::{RunEnd, RunReport};

use super::progress::rough;
use minder_runner::text::{count, escape, format_bytes, time};
use minder_ui::color::Palette;
use unicode_width::UnicodeWidthStr;

/// The text between two parts of the first line.
const SEPARATOR: &str = " · ";
/// The text before the rest of a first line that is too long.
const INDENT: &str = "  ";

/// Formats the summary of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) report: &'a RunReport,
    /// The number of columns for a line; `None` if a line may have any length.
    pub(crate) width: Option<usize>,
}

impl Summary<'_> {
    /// Returns `true` if a signal ended the run. Then the signal may have caused the failures.
    fn is_cancelled(&self) -> bool {
        matches!(self.report.end, RunEnd::Signal(_))
    }

    /// Returns `true` if the summary is printed: always on a terminal, elsewhere only if a job
    /// failed or left something behind.
    pub(crate) fn is_wanted(&self) -> bool {
        stderr().is_terminal()
            || self.report.counts.failed > 0
            || self.report.stats.leaked_count > 0
            || self.report.left_running() > 0
    }

    /// Returns the lines of the summary.
    pub(crate) fn lines(&self, palette: Palette) -> Vec<String> {
        let failed = self.report.failed();
        let mut lines = self.first_lines(palette);
        let stats = &self.report.stats;
        let with_reason = |job: &JobFailure| {
            format!("{}  ({})", palette.name(&shown(&job.name)), failure_text(&job.reason))
        };
        lines.extend(
            stats.failed.iter().map(|job| format!("  {} {}", palette.failed("failed:"), with_reason(job))),
        );
        let named_count = stats.failed.len() as u64;
        if failed > named_count && named_count > 0 {
            lines.push(format!("  and {} more", failed - named_count));
        }
        lines.extend(stats.cut_off.iter().map(|job| format!("  cut off: {}", with_reason(job))));
        let cut = stats.cancelled.saturating_sub(stats.halted + stats.cut_off.len() as u64);
        if cut > 0 {
            lines.push(format!("  and {cut} more"));
        }
        let flaky = |(name, tries): &(String, u32)| {
            format!("  flaky: {}  (succeeded at try {tries})", palette.name(name))
        };
        lines.extend(stats.flaky.iter().map(flaky));
        lines.extend(self.halted_lines());
        if stats.requeued > 0 {
            let jobs = count(stats.requeued, "job");
            lines.push(format!("  killed because memory ran short, and requeued: {jobs}"));
        }
        lines.extend(self.leaked_lines());
        lines.extend(self.left_lines());
        // The output of failed jobs was shown. The record has the names of those that are not named here.
        if failed > named_count
            && !self.is_cancelled()
            && let Some(run) = &self.report.run
        {
            lines.push(format!("  details: minder log {run} --failed"));
        }
        lines
    }

    /// Returns the line with the counts of jobs and the times.
    pub(crate) fn first_line(&self) -> String {
        self.parts(Palette::PLAIN).join(SEPARATOR)
    }

    /// Returns the same line, or several if the terminal is narrow.
    fn first_lines(&self, palette: Palette) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut used = 0;
        for (part, colored) in self.parts(Palette::PLAIN).iter().zip(self.parts(palette)) {
            used += SEPARATOR.width() + part.width();
            match lines.last_mut() {
                Some(line) if self.width.is_none_or(|width| used <= width) => {
                    line.extend([SEPARATOR, &colored]);
                }
                line => {
                    let indent = if line.is_some() { INDENT } else { "" };
                    used = indent.width() + part.width();
                    lines.push(format!("{indent}{colored}"));
                }
            }
        }
        lines
    }

    /// Returns the counts of jobs and the times.
    fn parts(&self, palette: Palette) -> Vec<String> {
        let JobCounts { succeeded, retried, .. } = self.report.counts;
        let failed = self.report.failed();
        let text = format!("{failed} failed");
        let jobs = count(succeeded + failed, "job");
        let stopped = self.report.stats.halted;
        let is_partial = self.is_cancelled()
            || self.report.halted.as_ref().is_some_and(|halt| stopped > 0 || halt.not_run != Some(0));
        let mut parts = vec![match self.report.total {
            Some(total) if is_partial => format!("{} of {total} done", succeeded + failed),
            _ if is_partial => format!("{jobs} done"),
            _ => jobs,
        }];
        parts.push(if failed > 0 { palette.failed(&text) } else { text });
        let mut some = |number: u64, text: String| (number > 0).then(|| parts.push(text));
        some(self.report.stats.timed_out, format!("{} timed out", self.report.stats.timed_out));
        some(
            self.report.stats.out_of_memory,
            format!("{} killed for memory", self.report.stats.out_of_memory),
        );
        some(retried, format!("{retried} {}", if retried == 1 { "retry" } else { "retries" }));
        some(self.report.stats.flaky_count, format!("{} flaky", self.report.stats.flaky_count));
        let waiting = self.report.waiting_for_retry();
        some(waiting, format!("{waiting} waiting for a retry"));
        let cut = self.report.stats.cancelled.saturating_sub(self.report.stats.halted);
        some(stopped, format!("{stopped} stopped"));
        some(cut, format!("{cut} cut off"));
        let not_run = self.not_started();
        some(not_run, format!("{not_run} not started"));
        parts.push(format!("{} elapsed", time(self.report.elapsed)));
        parts.push(format!("{} CPU", time(self.report.stats.cpu)));
        let gain = self.report.stats.wall.as_secs_f64() / self.report.elapsed.as_secs_f64().max(1e-6);
        if succeeded + failed > 1 && gain >= 1.05 {
            parts.push(format!("{gain:.1}× as fast as one at a time"));
        }
        parts
    }

    /// Returns how many jobs were not started, as far as that is known.
    fn not_started(&self) -> u64 {
        let RunReport { counts, halted, total, .. } = self.report;
        let ended = counts.succeeded + counts.failed + self.report.waiting_for_retry();
        let left = match (halted, total) {
            // They were started before.
            (Some(halted), _) => halted.not_run.unwrap_or(0).saturating_sub(self.report.waiting_for_retry()),
            (None, Some(total)) if self.is_cancelled() => total.saturating_sub(ended + counts.skipped),
            (None, _) => 0,
        };
        counts.skipped + left
    }

    /// Returns the lines about jobs that did not run or were terminated, with the reason.
    fn halted_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(HaltSummary { rule, not_run, .. }) = &self.report.halted {
            if self.report.stats.halted > 0 {
                lines.push(format!("  stopped: {}  (--halt {rule})", count(self.report.stats.halted, "job")));
            }
            let waiting = self.report.waiting_for_retry();
            match not_run.map(|jobs| jobs.saturating_sub(waiting)) {
                Some(0) => (),
                Some(jobs) => lines.push(format!("  not started: {}  (--halt {rule})", count(jobs, "job"))),
                None => lines.push(format!("  not started: the rest of the input  (--halt {rule})")),
            }
        }
        if self.report.counts.skipped > 0 {
            let jobs = count(self.report.counts.skipped, "job");
            lines.push(format!("  not started: {jobs}, since what they depend on failed"));
        }
        lines
    }

    /// Returns the command that resumes the run, if that is possible.
    pub(crate) fn resume_line(&self) -> Option<String> {
        self.report.resume.as_ref().map(|command| format!("  to resume: minder {}", shown(command)))
    }

    /// Returns the lines about jobs that may have lost output after their end.
    pub(crate) fn leaked_lines(&self) -> Vec<String> {
        let stats = &self.report.stats;
        let leaked = |job: &String| {
            format!("  left its output open: {}  (closed after 100 ms; `--leak wait` reads on)", shown(job))
        };
        let mut lines: Vec<String> = stats.leaked.iter().map(leaked).collect();
        let unnamed = stats.leaked_count - stats.leaked.len() as u64;
        if unnamed > 0 {
            lines.push(format!("  and {unnamed} more that left their output open"));
        }
        lines
    }

    /// Returns the line about processes that jobs left running. After a run that ended by itself,
    /// they continue to run.
    fn left_lines(&self) -> Option<String> {
        let adopted: Vec<String> = self
            .report
            .orphans
            .iter()
            .take(NAMED_MAX)
            .map(|(pid, name)| format!("{} ({pid})", shown(name)))
            .collect();
        match (self.report.left_running(), adopted.as_slice()) {
            (0, _) => None,
            (jobs, []) => Some(format!("  still running: processes of {}", count(jobs, "job"))),
            (_, names) => {
                let more = match self.report.orphans.len() - names.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Some(format!("  still running: {}{more}", names.join(", ")))
            }
        }
    }
}

/// Returns a foreign text as it may be shown.
fn shown(text: &str) -> String {
    escape(text.as_bytes())
}

/// Describes why a job failed, and how long it ran.
pub(crate) fn failure_text(reason: &FailureReason) -> String {
    let text = cause_text(reason);
    match reason {
        FailureReason::Exited(_, wall) | FailureReason::Memory(wall) | FailureReason::MemoryMax(_, wall) => {
            format!("{text}, {}", time(*wall))
        }
        FailureReason::TimedOut(_) | FailureReason::NotStarted(_) => text,
    }
}

/// Describes why a job failed, without what a terminal would interpret.
pub(super) fn cause_text(reason: &FailureReason) -> String {
    match reason {
        FailureReason::Exited(exit, _) => status(*exit),
        FailureReason::TimedOut(limit) => format!("timed out after {}", rough(*limit)),
        FailureReason::Memory(_) => "killed because memory ran short".to_owned(),
        FailureReason::MemoryMax(max, _) => format!("killed at its memory limit of {}", format_bytes(*max)),
        FailureReason::NotStarted(why) => shown(why),
    }
}

/// Describes the exit status of a job.
fn status(status: ExitStatus) -> String {
    match status {
        ExitStatus::Signaled { signal, .. } => match signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        status => status.to_string(),
    }
}

/// Returns the name of a signal that has the same number on every Unix.
pub(crate) fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use minder_runner::report::RunStats;

    use super::*;

    const KILLED: ExitStatus = ExitStatus::Signaled { signal: 9, core_dumped: false };

    fn failure(name: &str, reason: FailureReason) -> JobFailure {
        JobFailure { name: name.to_owned(), reason }
    }

    fn report(change: impl FnOnce(&mut RunReport, &mut RunStats)) -> RunReport {
        let mut report = RunReport::default();
        let mut stats = RunStats::default();
        change(&mut report, &mut stats);
        report.stats = stats;
        report
    }

    fn lines(report: &RunReport) -> Vec<String> {
        Summary { report, width: None }.lines(Palette::PLAIN)
    }

    #[test]
    fn summary_names_failed_jobs() {
        let report = report(|report, stats| {
            stats.wall = Duration::from_secs(36);
            stats.cpu = Duration::from_millis(31_400);
            stats.failed = vec![failure("./test.sh bsd", FailureReason::NotStarted("not found".to_owned()))];
            report.counts.succeeded = 2;
            report.counts.failed = 1;
            report.elapsed = Duration::from_millis(18_200);
        });
        assert_eq!(
            lines(&report),
            [
                "3 jobs · 1 failed · 18.2 s elapsed · 31.4 s CPU · 2.0× as fast as one at a time",
                "  failed: ./test.sh bsd  (not found)"
            ]
        );
    }

    #[test]
    fn first_line_is_divided_between_its_parts_on_a_narrow_terminal() {
        let report = report(|report, stats| {
            stats.wall = Duration::from_secs(36);
            stats.cpu = Duration::from_millis(31_400);
            report.counts.succeeded = 2;
            report.counts.failed = 1;
            report.elapsed = Duration::from_millis(18_200);
        });
        let lines = |width| Summary { report: &report, width: Some(width) }.lines(Palette::PLAIN);
        assert_eq!(
            lines(79),
            ["3 jobs · 1 failed · 18.2 s elapsed · 31.4 s CPU · 2.0× as fast as one at a time"]
        );
        assert_eq!(
            lines(78),
            ["3 jobs · 1 failed · 18.2 s elapsed · 31.4 s CPU", "  2.0× as fast as one at a time"]
        );
        assert_eq!(
            lines(31),
            ["3 jobs · 1 failed", "  18.2 s elapsed · 31.4 s CPU", "  2.0× as fast as one at a time"]
        );
        let colored = Summary { report: &report, width: Some(17) }.lines(Palette::COLORED);
        assert_eq!(colored[0], "3 jobs · \x1b[31m1 failed\x1b[0m");
        assert_eq!(lines(1).len(), 5);
    }

    #[test]
    fn summary_distinguishes_reasons_of_failures() {
        let wall = Duration::from_secs(11);
        let mut report = report(|report, stats| {
            stats.failed = vec![
                failure("slow", FailureReason::TimedOut(Duration::from_secs(10))),
                failure("bad", FailureReason::Exited(ExitStatus::Exited(2), wall)),
                failure("large", FailureReason::Memory(wall)),
                failure("limited", FailureReason::MemoryMax(100 << 20, wall)),
            ];
            stats.cut_off = vec![failure("running", FailureReason::Exited(KILLED, wall))];
            stats.timed_out = 1;
            stats.out_of_memory = 2;
            stats.cancelled = 2;
            stats.halted = 1;
            stats.requeued = 1;
            report.counts.succeeded = 1;
            report.counts.failed = 6;
            report.counts.retried = 2;
            report.counts.skipped = 3;
            report.halted = Some(halted(Some(7)));
            report.elapsed = wall * 20;
        });
        assert_eq!(
            lines(&report),
            [
                "5 jobs done · 4 failed · 1 timed out · 2 killed for memory · 2 retries · 1 stopped · \
                 1 cut off · 10 not started · 3 min 40 s elapsed · 0 ms CPU",
                "  failed: slow  (timed out after 10 s)",
                "  failed: bad  (exit 2, 11.0 s)",
                "  failed: large  (killed because memory ran short, 11.0 s)",
                "  failed: limited  (killed at its memory limit of 100 MiB, 11.0 s)",
                "  cut off: running  (killed by KILL, 11.0 s)",
                "  stopped: 1 job  (--halt now,fail=1)",
                "  not started: 7 jobs  (--halt now,fail=1)",
                "  not started: 3 jobs, since what they depend on failed",
                "  killed because memory ran short, and requeued: 1 job",
            ]
        );
        report.halted = Some(halted(None));
        assert_eq!(lines(&report)[7], "  not started: the rest of the input  (--halt now,fail=1)");
    }

    fn halted(not_run: Option<u64>) -> HaltSummary {
        HaltSummary { why: "enough have failed".to_owned(), rule: "now,fail=1".to_owned(), not_run }
    }

    #[test]
    fn summary_names_ten_failed_jobs_and_counts_the_rest() {
        let report = report(|report, stats| {
            let exited = FailureReason::Exited(ExitStatus::Exited(1), Duration::from_secs(11));
            stats.failed = (0..10).map(|job| failure(&job.to_string(), exited.clone())).collect();
            report.counts.failed = 25;
            report.counts.retried = 1;
        });
        let lines = lines(&report);
        assert_eq!((lines.len(), lines[11].as_str()), (12, "  and 15 more"));
        assert!(lines[0].starts_with("25 jobs · 25 failed · 1 retry · 0 ms elapsed"), "{}", lines[0]);
    }

    #[test]
    fn leaks_and_orphans_that_are_not_named_are_counted() {
        let many = report(|report, stats| {
            stats.leaked = vec!["x".to_owned(); 10];
            stats.leaked_count = 200;
            report.orphans = (0..200).map(|pid| (pid, "y".to_owned())).collect();
        });
        assert!(Summary { report: &many, width: None }.is_wanted());
        let text = lines(&many);
        assert_eq!((text.len(), text[11].as_str()), (13, "  and 190 more that left their output open"));
        assert!(text[12].ends_with("y (8), y (9) and 190 more"), "{}", text[12]);
        let few = report(|report, stats| {
            stats.leaked = vec!["x".to_owned(); 10];
            stats.leaked_count = 10;
            report.orphans = vec![(1, "y".to_owned())];
        });
        let text = lines(&few);
        assert_eq!((text.len(), text[11].as_str()), (12, "  still running: y (1)"));
    }
}
