//! The last lines of a run: what was done, what it cost, what failed.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use minder::jobs::JobCounts;
use minder::{ExitInfo, ExitStatus, Outcome};

use super::progress::rough;
use super::{count, time};
use crate::ui::color::Palette;

/// How many failed jobs are named. The rest is counted.
const NAMED_MAX: usize = 10;

/// Why a job ended that did not end by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndCause {
    /// It did.
    #[default]
    Own,
    /// It was given so long, and took longer.
    TimedOut(Duration),
    /// Memory ran short.
    Memory,
    /// Enough others had failed, or succeeded.
    Halted,
}

/// A job that is to be named.
#[derive(Debug)]
struct NamedFailure {
    name: String,
    /// How it ended.
    how: String,
}

/// What one loop adds up.
#[derive(Debug, Default)]
pub(crate) struct RunStats {
    pub(crate) cpu: Duration,
    /// The sum of the jobs' own times: what they would have taken one by one.
    pub(crate) wall: Duration,
    failed: Vec<NamedFailure>,
    cut_off: Vec<NamedFailure>,
    leaked: Vec<String>,
    /// How many jobs left their output open; the first of them are named.
    leaked_count: u64,
    pub(crate) left_running: u64,
    /// Jobs that our order ended, those of `halted` too.
    pub(crate) cut: u64,
    /// Failed jobs that took too long.
    pub(crate) timed_out: u64,
    /// Failed jobs that were killed since memory ran short.
    starved: u64,
    /// Failed jobs that were killed since no more were wanted. They are not named: whoever caused
    /// it is.
    halted: u64,
    /// How often a job was killed since memory ran short, to be run again.
    put_back: u64,
}

impl EndCause {
    /// A word for the record. A time-out has a member of its own there.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::Own | Self::TimedOut(_) => None,
            Self::Memory => Some("memory"),
            Self::Halted => Some("halted"),
        }
    }
}

impl RunStats {
    /// Takes the end of a job, which had this cause. One that succeeded nevertheless did.
    pub(crate) fn add_as(
        &mut self,
        cause: EndCause,
        outcome: &Outcome,
        wall: Duration,
        name: impl Fn() -> String,
    ) {
        self.take(cause, outcome.exit, wall, &name);
        self.left_running += u64::from(outcome.left_running);
        if outcome.leaked {
            self.leak(&name);
        }
    }

    /// Counts a job that left its output open.
    fn leak(&mut self, name: &dyn Fn() -> String) {
        self.leaked_count += 1;
        if self.leaked.len() < NAMED_MAX {
            self.leaked.push(name());
        }
    }

    /// Takes the end of a job that our order cut off: it is not one that failed, and runs again.
    pub(crate) fn add_cut(
        &mut self,
        cause: EndCause,
        exit: ExitInfo,
        wall: Duration,
        name: impl Fn() -> String,
    ) {
        self.spend(exit, wall);
        // One that had its way nevertheless is counted among those that did.
        if exit.status.success() {
            return;
        }
        self.cut += 1;
        if cause == EndCause::Halted {
            self.halted += 1;
        } else if self.cut_off.len() < NAMED_MAX {
            let how = format!("{}, {}", status(exit.status), time(wall));
            self.cut_off.push(NamedFailure { name: name(), how });
        }
    }

    /// Takes the end of an attempt after which the job runs again: it costs, and is not told of.
    pub(crate) fn add_attempt(&mut self, cause: EndCause, exit: ExitInfo, wall: Duration) {
        self.spend(exit, wall);
        self.put_back += u64::from(cause == EndCause::Memory);
    }

    /// Takes a job that was never started.
    pub(crate) fn add_refused(&mut self, name: &str, why: &str) {
        self.name(name.to_owned(), why.to_owned());
    }

    /// Adds what another loop added up.
    pub(crate) fn merge(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
        self.left_running += other.left_running;
        self.cut += other.cut;
        self.timed_out += other.timed_out;
        self.starved += other.starved;
        self.halted += other.halted;
        self.put_back += other.put_back;
        self.leaked_count += other.leaked_count;
        self.failed.extend(other.failed);
        self.leaked.extend(other.leaked);
        self.cut_off.extend(other.cut_off);
        self.failed.truncate(NAMED_MAX);
        self.cut_off.truncate(NAMED_MAX);
        self.leaked.truncate(NAMED_MAX);
    }

    fn spend(&mut self, exit: ExitInfo, wall: Duration) {
        if let Some(usage) = exit.usage {
            self.cpu += usage.user + usage.system;
        }
        self.wall += wall;
    }

    fn take(&mut self, cause: EndCause, exit: ExitInfo, wall: Duration, name: &dyn Fn() -> String) {
        self.spend(exit, wall);
        if exit.status.success() {
            return;
        }
        let how = match cause {
            EndCause::Own => format!("{}, {}", status(exit.status), time(wall)),
            EndCause::TimedOut(limit) => {
                self.timed_out += 1;
                format!("timed out after {}", rough(limit))
            }
            EndCause::Memory => {
                self.starved += 1;
                format!("killed since memory ran short, {}", time(wall))
            }
            // It has no row, and is counted by `add_cut`.
            EndCause::Halted => return,
        };
        if self.failed.len() < NAMED_MAX {
            self.name(name(), how);
        }
    }

    fn name(&mut self, name: String, how: String) {
        if self.failed.len() < NAMED_MAX {
            self.failed.push(NamedFailure { name, how });
        }
    }
}

/// A run that ended before its input, since enough jobs had failed or succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HaltSummary {
    /// What was asked for: `--halt soon,fail=1`.
    pub(crate) why: String,
    /// How many jobs were not run, if that is known.
    pub(crate) not_run: Option<u64>,
}

/// A run that is over.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) counts: JobCounts,
    pub(crate) tally: RunStats,
    pub(crate) elapsed: Duration,
    /// Processes that jobs left behind, by number and name.
    pub(crate) adopted: Vec<(u32, String)>,
    /// Whether it was cut off, and failures are not of the jobs' own making.
    pub(crate) cut: bool,
    /// Whether and why it ended before its input.
    pub(crate) halted: Option<HaltSummary>,
    /// The id of its record.
    pub(crate) run: Option<String>,
    /// What stands behind `--resume` when it is taken up again.
    pub(crate) resume: Option<String>,
}

impl Summary {
    /// Whether somebody wants to read it: a person at a terminal, or anybody when not all went
    /// well.
    pub(crate) fn is_wanted(&self) -> bool {
        stderr().is_terminal()
            || self.counts.failed > 0
            || self.tally.leaked_count > 0
            || self.left_running() > 0
    }

    /// Its lines.
    pub(crate) fn lines(&self, paint: Palette) -> Vec<String> {
        let failed = self.failed();
        let mut lines = vec![self.first_line(paint)];
        let tally = &self.tally;
        let named = |job: &NamedFailure| format!("{}  ({})", paint.name(&job.name), job.how);
        lines.extend(tally.failed.iter().map(|job| format!("  {} {}", paint.failed("failed:"), named(job))));
        let told = tally.failed.len() as u64;
        if failed > told && told > 0 {
            lines.push(format!("  and {} more", failed - told));
        }
        lines.extend(tally.cut_off.iter().map(|job| format!("  cut off: {}", named(job))));
        let cut = tally.cut.saturating_sub(tally.halted + tally.cut_off.len() as u64);
        if cut > 0 {
            lines.push(format!("  and {cut} more"));
        }
        lines.extend(self.halted_lines());
        if tally.put_back > 0 {
            let jobs = count(tally.put_back, "job");
            lines.push(format!("  killed since memory ran short, and put back: {jobs}"));
        }
        let leaked =
            |job| format!("  left its output open: {job}  (closed after 100 ms; `--leak wait` reads on)");
        lines.extend(tally.leaked.iter().map(leaked));
        let unnamed = tally.leaked_count - tally.leaked.len() as u64;
        if unnamed > 0 {
            lines.push(format!("  and {unnamed} more that left their output open"));
        }
        lines.extend(self.left_lines());
        if let Some(run) = self.run.as_ref().filter(|_| failed > 0 && !self.cut) {
            lines.push(format!("  more of them: minder log {run} --failed"));
        }
        lines
    }

    /// Jobs that failed by themselves: those that have a row in the record. Others were cut off,
    /// and run again.
    fn failed(&self) -> u64 {
        self.counts.failed.saturating_sub(self.tally.cut)
    }

    /// What was done, and what it cost.
    fn first_line(&self, paint: Palette) -> String {
        let JobCounts { succeeded, retried, .. } = self.counts;
        let failed = self.failed();
        let text = format!("{failed} failed");
        let mut parts = vec![count(succeeded + failed, "job")];
        parts.push(if failed > 0 { paint.failed(&text) } else { text });
        let mut some = |number: u64, text: String| (number > 0).then(|| parts.push(text));
        some(self.tally.timed_out, format!("{} timed out", self.tally.timed_out));
        some(self.tally.starved, format!("{} killed for memory", self.tally.starved));
        some(retried, format!("{retried} {}", if retried == 1 { "retry" } else { "retries" }));
        let cut = self.tally.cut.saturating_sub(self.tally.halted);
        some(cut, format!("{cut} cut off"));
        let not_run = self.counts.skipped + self.halted.as_ref().and_then(|it| it.not_run).unwrap_or(0);
        some(not_run, format!("{not_run} not run"));
        parts.push(format!("{} elapsed", time(self.elapsed)));
        parts.push(format!("{} CPU", time(self.tally.cpu)));
        let gain = self.tally.wall.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-6);
        if succeeded + failed > 1 && gain >= 1.05 {
            parts.push(format!("{gain:.1} times as fast as one by one"));
        }
        parts.join(" · ")
    }

    /// What did not run, or was ended, and why.
    fn halted_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(HaltSummary { why, not_run }) = &self.halted {
            if self.tally.halted > 0 {
                lines.push(format!("  ended with the run: {}  ({why})", count(self.tally.halted, "job")));
            }
            match not_run {
                Some(0) => (),
                Some(jobs) => lines.push(format!("  not run: {}  ({why})", count(*jobs, "job"))),
                None => lines.push(format!("  not run: the rest of the input  ({why})")),
            }
        }
        if self.counts.skipped > 0 {
            let jobs = count(self.counts.skipped, "job");
            lines.push(format!("  not run: {jobs}, since what they depend on failed"));
        }
        lines
    }

    /// How the run is taken up again, if that is possible.
    pub(crate) fn resume_line(&self) -> Option<String> {
        self.resume.as_ref().map(|words| format!("  go on with it: minder run --resume {words}"))
    }

    fn left_running(&self) -> u64 {
        self.tally.left_running.max(self.adopted.len() as u64)
    }

    /// What jobs left running. It lives on after a run that ended by itself.
    fn left_lines(&self) -> Option<String> {
        let adopted: Vec<String> = self
            .adopted
            .iter()
            .take(NAMED_MAX)
            .map(|(pid, name)| format!("{} ({pid})", name.escape_debug()))
            .collect();
        match (self.left_running(), adopted.as_slice()) {
            (0, _) => None,
            (jobs, []) => Some(format!("  left running by {}: they live on", count(jobs, "job"))),
            (_, names) => {
                let more = match self.adopted.len() - names.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Some(format!("  left running: {}{more}; they live on", names.join(", ")))
            }
        }
    }
}

/// How a job ended, in few words.
fn status(status: ExitStatus) -> String {
    match status {
        ExitStatus::Signaled { signal, .. } => match signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        status => status.to_string(),
    }
}

/// The names that are the same number on every Unix.
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
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a job that ended so after eleven seconds.
    fn end(tally: &mut RunStats, cause: EndCause, status: ExitStatus, name: &str) {
        tally.take(cause, ExitInfo { status, usage: None }, Duration::from_secs(11), &|| name.to_owned());
    }

    #[test]
    fn the_last_lines_name_what_failed() {
        let mut tally = RunStats {
            wall: Duration::from_secs(36),
            cpu: Duration::from_millis(31_400),
            ..RunStats::default()
        };
        tally.add_refused("./test.sh bsd", "not found");
        let mut counts = JobCounts::default();
        (counts.succeeded, counts.failed) = (2, 1);
        let elapsed = Duration::from_millis(18_200);
        let summary = Summary { counts, tally, elapsed, ..Summary::default() };
        assert_eq!(
            summary.lines(Palette::PLAIN),
            [
                "3 jobs · 1 failed · 18.2 s elapsed · 31.4 s CPU · 2.0 times as fast as one by one",
                "  failed: ./test.sh bsd  (not found)"
            ]
        );
    }

    #[test]
    fn jobs_that_did_not_end_by_themselves_are_told_apart() {
        let killed = ExitStatus::Signaled { signal: 9, core_dumped: false };
        let (mut tally, mut other, wall) =
            (RunStats::default(), RunStats::default(), Duration::from_secs(11));
        let limit = EndCause::TimedOut(Duration::from_secs(10));
        end(&mut tally, limit, killed, "slow");
        end(&mut tally, limit, ExitStatus::Exited(0), "in time after all");
        end(&mut tally, EndCause::Own, ExitStatus::Exited(2), "bad");
        end(&mut other, EndCause::Memory, killed, "large");
        other.add_cut(EndCause::Halted, ExitInfo { status: killed, usage: None }, wall, String::new);
        other.add_cut(EndCause::Own, ExitInfo { status: killed, usage: None }, wall, || "running".to_owned());
        other.add_attempt(EndCause::Memory, ExitInfo { status: killed, usage: None }, wall);
        other.add_attempt(EndCause::Own, ExitInfo { status: ExitStatus::Exited(1), usage: None }, wall);
        tally.merge(other);
        let mut counts = JobCounts::default();
        (counts.succeeded, counts.failed, counts.retried, counts.skipped) = (1, 5, 2, 3);
        let halted = Some(HaltSummary { why: "--halt now,fail=3".into(), not_run: Some(7) });
        let mut summary = Summary { counts, tally, halted, elapsed: wall * 20, ..Summary::default() };
        assert_eq!(
            summary.lines(Palette::PLAIN),
            [
                "4 jobs · 3 failed · 1 timed out · 1 killed for memory · 2 retries · 1 cut off · 10 not run · \
                 3 min 40 s elapsed · 0 ms CPU",
                "  failed: slow  (timed out after 10 s)",
                "  failed: bad  (exit 2, 11.0 s)",
                "  failed: large  (killed since memory ran short, 11.0 s)",
                "  cut off: running  (killed by KILL, 11.0 s)",
                "  ended with the run: 1 job  (--halt now,fail=3)",
                "  not run: 7 jobs  (--halt now,fail=3)",
                "  not run: 3 jobs, since what they depend on failed",
                "  killed since memory ran short, and put back: 1 job",
            ]
        );
        summary.halted = Some(HaltSummary { not_run: None, ..summary.halted.unwrap_or_default() });
        assert_eq!(summary.lines(Palette::PLAIN)[6], "  not run: the rest of the input  (--halt now,fail=3)");
    }

    #[test]
    fn no_more_are_named_than_one_reads() {
        let mut tally = RunStats::default();
        (0..25).for_each(|job| end(&mut tally, EndCause::Own, ExitStatus::Exited(1), &job.to_string()));
        let mut counts = JobCounts::default();
        (counts.failed, counts.retried) = (25, 1);
        let lines = Summary { counts, tally, ..Summary::default() }.lines(Palette::PLAIN);
        assert_eq!((lines.len(), lines[11].as_str()), (12, "  and 15 more"));
        assert!(lines[0].starts_with("25 jobs · 25 failed · 1 retry · 0 ms elapsed"), "{}", lines[0]);
    }

    #[test]
    fn those_that_are_not_named_are_counted() {
        let leak = |jobs| {
            let mut tally = RunStats::default();
            (0..jobs).for_each(|_| tally.leak(&|| "x".to_owned()));
            tally
        };
        let mut tally = leak(13);
        tally.merge(leak(187));
        let adopted = (0..200).map(|pid| (pid, "y".to_owned())).collect();
        let summary = Summary { tally, adopted, ..Summary::default() };
        assert!(summary.is_wanted());
        let lines = summary.lines(Palette::PLAIN);
        assert_eq!((lines.len(), lines[11].as_str()), (13, "  and 190 more that left their output open"));
        assert!(lines[12].ends_with("y (8), y (9) and 190 more; they live on"), "{}", lines[12]);
        let (tally, adopted) = (leak(10), vec![(1, "y".to_owned())]);
        let lines = Summary { tally, adopted, ..Summary::default() }.lines(Palette::PLAIN);
        assert_eq!((lines.len(), lines[11].as_str()), (12, "  left running: y (1); they live on"));
    }
}
