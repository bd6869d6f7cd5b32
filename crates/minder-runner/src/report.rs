//! The report about a run that has ended.

use std::time::Duration;

use minder::jobs::JobCounts;
use minder::{ExitInfo, ExitStatus, Outcome, Signal};
use minder_record::event::JobFinished;

/// The most jobs that each list of a [`RunStats`] names; the rest is counted.
pub const NAMED_MAX: usize = 10;

/// The result of a run.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RunReport {
    /// Jobs by result.
    pub counts: JobCounts,
    /// Resources used, and the jobs to name.
    pub stats: RunStats,
    /// The wall time of the run.
    pub elapsed: Duration,
    /// Processes that jobs left running: pid and name.
    pub orphans: Vec<(u32, String)>,
    /// Why the halt policy ended the run early, if it did.
    pub halted: Option<HaltSummary>,
    /// The number of jobs of this attempt, if it is known.
    pub total: Option<u64>,
    /// The id of the run's record.
    pub run: Option<String>,
    /// The arguments of minder that resume this run, if that is possible.
    pub resume: Option<String>,
    /// The way in which the run ended.
    pub end: RunEnd,
    /// `true` if an earlier run was to be resumed, and none of its jobs was left.
    pub nothing_left: bool,
    /// The exit status if an error ended it.
    pub error_status: u8,
}

impl Default for RunEnd {
    fn default() -> Self {
        Self::Status(0)
    }
}

impl RunReport {
    /// Returns how many jobs failed on their own. Jobs that the end of the run cut off are not
    /// among them: they run again when it is resumed.
    pub fn failed(&self) -> u64 {
        self.counts.failed.saturating_sub(self.stats.cancelled)
    }

    /// Returns how many jobs failed, and waited for their next try when the run ended.
    pub fn waiting_for_retry(&self) -> u64 {
        u64::try_from(self.stats.retrying).unwrap_or(0)
    }

    /// Returns how many jobs left processes behind.
    pub fn left_running(&self) -> u64 {
        self.stats.left_running.max(self.orphans.len() as u64)
    }
}

/// The way in which a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Its input was exhausted, or the halt policy ended it. The exit status is that of GNU
    /// parallel.
    Status(u8),
    /// A signal ended it. The process should end by the same signal.
    Signal(Signal),
    /// Standard output was closed by its reader, as with `| head`.
    StdoutClosed,
    /// Its jobs run on agents, which continue without this process.
    Detached,
    /// minder itself failed: a full disk, no descriptors, a program that does not exist.
    Failed(String),
    /// The input cannot be read to its end, or lacks a value that the command needs.
    InputFailed(String),
}

/// Why a job's process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndCause {
    /// On its own.
    #[default]
    Own,
    /// It ran longer than this limit.
    TimedOut(Duration),
    /// Memory was short.
    Memory,
    /// The kernel killed it because its processes reached this limit of memory, in bytes.
    MemoryMax(u64),
    /// It wanted to use the terminal of another process group.
    Terminal,
    /// The halt policy ended the run at once.
    Halted,
}

impl EndCause {
    /// Returns the value of the journal's key `cause`, if it has one. A time-out has its own key there.
    pub(crate) fn journal_value(self) -> Option<&'static str> {
        match self {
            Self::Own | Self::TimedOut(_) => None,
            Self::Memory => Some("memory"),
            Self::MemoryMax(_) => Some("memory limit"),
            Self::Terminal => Some("terminal"),
            Self::Halted => Some("halted"),
        }
    }
}

/// The end of a job.
#[derive(Clone, Debug)]
pub struct JobEnd {
    /// Its number.
    pub number: u64,
    /// Its command line, shortened for display.
    pub name: String,
    /// Its wall time.
    pub wall: Duration,
    /// Why it failed, if it did.
    pub failure: Option<FailureReason>,
    /// `true` if the end of the run cut it off: it did not fail, and runs again.
    pub is_cut_off: bool,
    /// Its whole command line, if [`Observer::wants_command`](crate::Observer::wants_command) asked for it.
    pub command: Option<String>,
    /// The number of jobs of the run, if it is known.
    pub total: Option<u64>,
}

/// A job that failed.
#[derive(Clone, Debug)]
pub struct JobFailure {
    /// Its command line, shortened for display.
    pub name: String,
    /// The reason for the failure.
    pub reason: FailureReason,
}

/// The reason for which a job failed.
#[derive(Clone, Debug)]
pub enum FailureReason {
    /// Its process ended with this status after this time.
    Exited(ExitStatus, Duration),
    /// It ran longer than this limit.
    TimedOut(Duration),
    /// It was killed because memory was short, after this time.
    Memory(Duration),
    /// It was killed because its processes reached this limit of memory, in bytes, after this time.
    MemoryMax(u64, Duration),
    /// It could not be started.
    NotStarted(String),
}

impl FailureReason {
    /// Returns why an attempt that ended like this failed.
    pub(crate) fn new(cause: EndCause, status: ExitStatus, wall: Duration) -> Self {
        match cause {
            EndCause::Own | EndCause::Terminal | EndCause::Halted => Self::Exited(status, wall),
            EndCause::TimedOut(limit) => Self::TimedOut(limit),
            EndCause::Memory => Self::Memory(wall),
            EndCause::MemoryMax(max) => Self::MemoryMax(max, wall),
        }
    }
}

/// Why a run ended before its input did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HaltSummary {
    /// The reason, as text: `enough have failed`.
    pub why: String,
    /// The rule as it is typed: `now,fail=1`.
    pub rule: String,
    /// The number of jobs that did not run, if that is known.
    pub not_run: Option<u64>,
}

/// The resources that the jobs of a run used, and the first jobs of each kind that a person wants
/// to see.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RunStats {
    /// User and system time of all jobs.
    pub cpu: Duration,
    /// The sum of the jobs' wall times: what they would have taken one after the other.
    pub wall: Duration,
    /// The first jobs that failed, at most [`NAMED_MAX`].
    pub failed: Vec<JobFailure>,
    /// The first jobs that the end of the run cut off, at most [`NAMED_MAX`].
    pub cut_off: Vec<JobFailure>,
    /// The first jobs that left their output open, at most [`NAMED_MAX`].
    pub leaked: Vec<String>,
    /// The number of jobs that left their output open.
    pub leaked_count: u64,
    /// The number of jobs that left processes running.
    pub left_running: u64,
    /// The number of jobs that the end of the run cut off, those of `halted` among them.
    pub cancelled: u64,
    /// The number of those that had attempts left.
    pub cancelled_early: u64,
    /// The number of those that had succeeded: a result of the last moment before the run was ended
    /// is not trusted if [`hold_results`](crate::config::RunConfig::hold_results) is set.
    pub withdrawn: u64,
    /// The number of failed jobs that ran too long.
    pub timed_out: u64,
    /// The number of failed jobs that were killed because memory was short, or for their limit of it.
    pub out_of_memory: u64,
    /// The number of jobs that the halt policy killed. They are not named: the jobs that caused it are.
    pub halted: u64,
    /// The number of times that a job was killed because memory was short, and requeued.
    pub requeued: u64,
    /// The first jobs that succeeded after a failed try, at most [`NAMED_MAX`], with the number of the try.
    pub flaky: Vec<(String, u32)>,
    /// The number of jobs that succeeded after a failed try.
    pub flaky_count: u64,
    /// The number of jobs that wait for their next try, as each worker thread counts them: the sum
    /// over all is the number of jobs.
    pub(crate) retrying: i64,
    /// The number of times that agents have started a job again.
    pub(crate) retried_by_agents: u64,
}

impl RunStats {
    /// Adds a finished job.
    pub(crate) fn add(
        &mut self,
        cause: EndCause,
        outcome: &Outcome,
        succeeded: bool,
        wall: Duration,
        name: impl Fn() -> String,
    ) {
        self.add_exit(cause, outcome.exit, succeeded, wall, &name);
        self.left_running += u64::from(outcome.left_running);
        if outcome.leaked {
            self.add_leak(&name);
        }
    }

    fn add_leak(&mut self, name: &dyn Fn() -> String) {
        self.leaked_count += 1;
        if self.leaked.len() < NAMED_MAX {
            self.leaked.push(name());
        }
    }

    /// Adds a job that the end of the run cut off. It did not fail: it runs again.
    pub(crate) fn add_cancelled(
        &mut self,
        cause: EndCause,
        exit: ExitInfo,
        wall: Duration,
        is_last_attempt: bool,
        name: impl Fn() -> String,
    ) {
        self.add_usage(exit, wall);
        self.cancelled += 1;
        self.cancelled_early += u64::from(!is_last_attempt);
        if cause == EndCause::Halted {
            self.halted += 1;
        } else if self.cut_off.len() < NAMED_MAX {
            self.cut_off.push(JobFailure { name: name(), reason: FailureReason::Exited(exit.status, wall) });
        }
    }

    /// Adds a job that succeeded, and whose result the end of the run withdrew: it runs again.
    pub(crate) fn add_withdrawn(&mut self, exit: ExitInfo, wall: Duration) {
        self.add_usage(exit, wall);
        self.cancelled += 1;
        self.withdrawn += 1;
    }

    /// Adds a job that succeeded, and whose output may not have reached its reader: it runs again.
    pub(crate) fn add_unseen(&mut self, exit: ExitInfo, wall: Duration) {
        self.add_usage(exit, wall);
    }

    /// Adds a failed attempt of a job that will run again.
    pub(crate) fn add_attempt(&mut self, cause: EndCause, exit: ExitInfo, wall: Duration) {
        self.add_usage(exit, wall);
        if cause == EndCause::Memory {
            self.requeued += 1;
        } else {
            self.retrying += 1;
        }
    }

    /// Adds a job that succeeded with this try, which is not its first.
    pub(crate) fn add_flaky(&mut self, attempt: u32, name: impl FnOnce() -> String) {
        self.flaky_count += 1;
        if self.flaky.len() < NAMED_MAX {
            self.flaky.push((name(), attempt));
        }
    }

    /// Adds a job that could not be started.
    pub(crate) fn add_unstarted(&mut self, name: &str, why: &str) {
        self.add_failure(|| name.to_owned(), FailureReason::NotStarted(why.to_owned()));
    }

    /// Adds a job that an agent has run.
    pub(crate) fn add_remote(
        &mut self,
        ended: &JobFinished,
        wall: Duration,
        failure: Option<FailureReason>,
        name: impl Fn() -> String,
    ) {
        let cpu = ended.user.unwrap_or(0.0) + ended.system.unwrap_or(0.0);
        self.cpu += Duration::try_from_secs_f64(cpu).unwrap_or_default();
        self.wall += wall;
        self.timed_out += u64::from(ended.timed_out);
        self.retried_by_agents += u64::from(ended.attempts.unwrap_or(1).saturating_sub(1));
        if ended.leaked {
            self.add_leak(&name);
        }
        match (failure, ended.attempts) {
            (Some(reason), _) => self.add_failure(name, reason),
            (None, Some(attempts)) if attempts > 1 => self.add_flaky(attempts, name),
            (None, _) => (),
        }
    }

    /// Adds what another worker thread counted.
    pub(crate) fn merge(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
        self.left_running += other.left_running;
        self.cancelled += other.cancelled;
        self.cancelled_early += other.cancelled_early;
        self.withdrawn += other.withdrawn;
        self.timed_out += other.timed_out;
        self.out_of_memory += other.out_of_memory;
        self.halted += other.halted;
        self.requeued += other.requeued;
        self.retrying += other.retrying;
        self.retried_by_agents += other.retried_by_agents;
        self.flaky_count += other.flaky_count;
        self.flaky.extend(other.flaky);
        self.flaky.truncate(NAMED_MAX);
        self.leaked_count += other.leaked_count;
        self.failed.extend(other.failed);
        self.leaked.extend(other.leaked);
        self.cut_off.extend(other.cut_off);
        self.failed.truncate(NAMED_MAX);
        self.cut_off.truncate(NAMED_MAX);
        self.leaked.truncate(NAMED_MAX);
    }

    fn add_usage(&mut self, exit: ExitInfo, wall: Duration) {
        if let Some(usage) = exit.usage {
            self.cpu += usage.user + usage.system;
        }
        self.wall += wall;
    }

    fn add_exit(
        &mut self,
        cause: EndCause,
        exit: ExitInfo,
        succeeded: bool,
        wall: Duration,
        name: &dyn Fn() -> String,
    ) {
        self.add_usage(exit, wall);
        if succeeded {
            return;
        }
        match cause {
            EndCause::Own | EndCause::Terminal => (),
            EndCause::TimedOut(_) => self.timed_out += 1,
            EndCause::Memory | EndCause::MemoryMax(_) => self.out_of_memory += 1,
            // It has no journal event, and `add_cancelled` counts it.
            EndCause::Halted => return,
        }
        self.add_failure(name, FailureReason::new(cause, exit.status, wall));
    }

    fn add_failure(&mut self, name: impl Fn() -> String, reason: FailureReason) {
        if self.failed.len() < NAMED_MAX {
            self.failed.push(JobFailure { name: name(), reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: ExitStatus = ExitStatus::Signaled { signal: 9, core_dumped: false };
    const WALL: Duration = Duration::from_secs(11);

    fn exit(status: ExitStatus) -> ExitInfo {
        status.into()
    }

    #[test]
    fn causes_are_counted_separately() {
        let limit = EndCause::TimedOut(Duration::from_secs(10));
        let mut stats = RunStats::default();
        stats.add_exit(limit, exit(KILLED), false, WALL, &|| "slow".to_owned());
        stats.add_exit(EndCause::Own, exit(ExitStatus::Exited(0)), true, WALL, &|| "good".to_owned());
        stats.add_exit(EndCause::Own, exit(ExitStatus::Exited(2)), false, WALL, &|| "bad".to_owned());
        let mut other = RunStats::default();
        other.add_exit(EndCause::Memory, exit(KILLED), false, WALL, &|| "large".to_owned());
        other.add_cancelled(EndCause::Halted, exit(KILLED), WALL, true, String::new);
        other.add_cancelled(EndCause::Own, exit(KILLED), WALL, false, || "running".to_owned());
        other.add_attempt(EndCause::Memory, exit(KILLED), WALL);
        other.add_attempt(EndCause::Own, exit(ExitStatus::Exited(1)), WALL);
        stats.merge(other);
        let names: Vec<_> = stats.failed.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["slow", "bad", "large"]);
        assert_eq!((stats.timed_out, stats.out_of_memory, stats.requeued), (1, 1, 1));
        assert_eq!((stats.cancelled, stats.cancelled_early), (2, 1));
        assert_eq!((stats.halted, stats.cut_off.len()), (1, 1));
        assert_eq!(stats.wall, WALL * 8);
    }

    #[test]
    fn stats_name_first_jobs_and_count_all() {
        let mut stats = RunStats::default();
        let mut other = RunStats::default();
        for job in 0..25 {
            stats.add_exit(EndCause::Own, exit(ExitStatus::Exited(1)), false, WALL, &|| job.to_string());
            stats.add_leak(&|| job.to_string());
            other.add_leak(&|| job.to_string());
        }
        stats.merge(other);
        assert_eq!((stats.failed.len(), stats.leaked.len(), stats.leaked_count), (10, 10, 50));
    }
}
