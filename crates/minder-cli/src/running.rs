//! The jobs that a run runs now.
//!
//! The record has only the ends of jobs. A job that runs is a child of the process that works on the
//! run, which holds a pidfd of it. So a run writes nothing for this. Its number and slot are in its
//! environment, which the job can change, and clear: then the job is there without a number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use minder_os::processes::{self, ChildProcess};
use minder_record::event::{AttemptStarted, JobFinished, OsBytes, now};
use minder_record::manifest::{InputSource, Manifest};
use minder_record::store;
use minder_template::shell_word;

use crate::recorded;
use crate::ui::{message, os_error_text};

/// The variables with the number and the slot of a job.
const VARIABLES: [&str; 2] = ["MINDER_JOB", "MINDER_SLOT"];
/// Those of a command line of GNU parallel.
const PARALLEL_VARIABLES: [&str; 2] = ["PARALLEL_SEQ", "PARALLEL_JOBSLOT"];

/// A job that runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunningJob {
    /// Its number. `None` if its environment has none, cannot be read, or has that of another job.
    pub(crate) job: Option<u64>,
    pub(crate) slot: Option<u64>,
    pub(crate) pid: u32,
    /// The start of its process: see [`ChildProcess::started`].
    started: u64,
    /// `true` if the process is certainly a job that runs now, and not an orphan of one.
    is_held: bool,
    /// The start of the attempt, in seconds since 1970.
    attempt_at: f64,
    /// The time since its start. 0 if its process is not seen.
    pub(crate) age: Duration,
    /// The program and the arguments of its process.
    pub(crate) argv: Vec<OsString>,
}

/// Why running jobs cannot be seen.
#[derive(Debug)]
pub(crate) enum Unseen {
    /// This system shows no other processes.
    Unsupported,
    /// For the reason in this message.
    Here(String),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("running jobs cannot be seen on this system"),
            Self::Here(message) => f.write_str(message),
        }
    }
}

impl Unseen {
    /// Prints the message below a list of jobs that ended: not on a system where it would always stand there.
    pub(crate) fn print_below_list(&self) {
        if let Self::Here(text) = self {
            message(text);
        }
    }
}

/// Returns the jobs of a run that run now, in the order of their numbers; those without one come last.
/// `started` is the first event of the last attempt.
///
/// # Errors
/// They cannot be seen.
pub(crate) fn running_jobs(
    dir: &Path,
    manifest: Option<&Manifest>,
    started: &AttemptStarted,
) -> Result<Vec<RunningJob>, Unseen> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::Unsupported => Unseen::Unsupported,
        _ => Unseen::Here(format!("running jobs cannot be seen: {}", os_error_text(&error))),
    };
    // The pid may be one of another container, or may belong to another process by now.
    let pid = started.pid;
    let lock = store::lock_path(dir).metadata().map_err(cannot)?;
    let why = match processes::has_open(pid, &lock) {
        Ok(true) => None,
        Ok(false) => Some(format!("process {pid} is not the one of the run")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("process {pid} is not seen here"))
        }
        Err(error) => return Err(cannot(error)),
    };
    if let Some(why) = why {
        return Err(Unseen::Here(format!("running jobs cannot be seen: {why}")));
    }
    let typed = manifest.and_then(|manifest| recorded::typed_flags(manifest).ok()).unwrap_or_default();
    let is_parallel = typed.iter().any(|flag| flag == "--parallel-env");
    let names = if is_parallel { PARALLEL_VARIABLES } else { VARIABLES };
    let mut jobs = identified(processes::children(pid).map_err(cannot)?, names, manifest.and_then(total));
    jobs.iter_mut().for_each(|job| job.attempt_at = started.at);
    Ok(jobs)
}

/// Returns the number of jobs of a run, if its manifest has it.
pub(crate) fn total(manifest: &Manifest) -> Option<u64> {
    match manifest.input {
        InputSource::Arguments { jobs, .. } => jobs,
        _ => None,
    }
}

/// Returns the jobs among the children of a runner. A child of which the runner holds a pidfd is a job, or
/// the command of `--limit`, whose number is empty. Where it holds none, since the system has no pidfds, a
/// job leads its process group. If two of those have the same number, one is an orphan of the job; what is
/// left of an earlier try is older.
fn identified(children: Vec<ChildProcess>, [job, slot]: [&str; 2], total: Option<u64>) -> Vec<RunningJob> {
    let has_held = children.iter().any(|child| child.is_held);
    let number = |child: &ChildProcess| -> Option<u64> {
        let number = child.variable(job)?.parse().ok()?;
        (number > 0 && total.is_none_or(|total| number <= total)).then_some(number)
    };
    let running = |job: Option<u64>, child: ChildProcess| RunningJob {
        job,
        slot: job.and_then(|_| child.variable(slot)?.parse().ok()),
        pid: child.pid,
        started: child.started,
        is_held: child.is_held,
        attempt_at: 0.0,
        age: child.age,
        argv: child.argv,
    };
    let mut numbered: BTreeMap<u64, Vec<ChildProcess>> = BTreeMap::new();
    let mut others = Vec::new();
    for child in children {
        match number(&child) {
            Some(number) => numbered.entry(number).or_default().push(child),
            None if child.variable(job) == Some("") => (),
            None if child.is_held || (!has_held && child.leads_group) => others.push(running(None, child)),
            None => (),
        }
    }
    let mut jobs = Vec::new();
    for (number, mut same) in numbered {
        if same.iter().any(|child| child.is_held) {
            same.retain(|child| child.is_held);
        } else {
            same.sort_by_key(|child| (child.leads_group, std::cmp::Reverse(child.age)));
            same.drain(..same.len() - 1);
        }
        // All of them may have copied the number of another job.
        let known = (same.len() == 1).then_some(number);
        let into = if known.is_some() { &mut jobs } else { &mut others };
        into.extend(same.into_iter().map(|child| running(known, child)));
    }
    jobs.extend(others);
    jobs
}

/// Removes the jobs of which this is true: they have ended since their processes were read. If such a
/// process still runs, another job has changed its number, which is not known then.
pub(crate) fn remove_ended(jobs: &mut Vec<RunningJob>, has_ended: impl Fn(&RunningJob) -> bool) {
    jobs.retain_mut(|job| {
        if !has_ended(job) {
            return true;
        }
        job.job = None;
        job.slot = None;
        job.is_held && processes::is_running(job.pid, job.started)
    });
}

/// Says how many of the jobs have no number.
pub(crate) fn print_unnumbered(jobs: &[RunningJob]) {
    let count = jobs.iter().filter(|job| job.job.is_none()).count();
    if count > 0 {
        let text = if count == 1 {
            "1 running job cannot be told apart: its number (MINDER_JOB) is missing, unreadable or that of \
             another job"
                .to_owned()
        } else {
            format!(
                "{count} running jobs cannot be told apart: their numbers (MINDER_JOB) are missing, \
                 unreadable or those of other jobs"
            )
        };
        message(&text);
    }
}

impl RunningJob {
    /// Returns whether the job has ended by this event: the event is of this attempt, or the process is older
    /// than that end and so an orphan of the job.
    pub(crate) fn has_ended(&self, event: &JobFinished) -> bool {
        self.job == Some(event.job)
            && (event.at >= self.attempt_at || now() - self.age.as_secs_f64() < event.at + event.wall)
    }

    /// Returns the time since its start, if its process is seen.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        (self.started > 0).then_some(self.age)
    }

    /// Returns its number for people.
    pub(crate) fn number(&self) -> String {
        self.job.map_or_else(|| "?".to_owned(), |job| job.to_string())
    }

    /// Returns its command for people, as it can be pasted into a shell.
    pub(crate) fn command(&self) -> String {
        if self.argv.is_empty() {
            return format!("(process {}, which /proc hides)", self.pid);
        }
        let line = self.shell_line();
        line.unwrap_or_else(|| self.argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
    }

    /// Returns the arguments of its process.
    pub(crate) fn words(&self) -> Vec<OsBytes> {
        self.argv.iter().map(|word| OsBytes::from(word.as_os_str())).collect()
    }

    /// Returns the line that a shell runs, with its values: `sort a.txt` for
    /// `/bin/sh -c 'sort "$1"' /bin/sh a.txt`. `None` for another process.
    fn shell_line(&self) -> Option<String> {
        let [shell, flag, line, name, values @ ..] = self.argv.as_slice() else { return None };
        if flag != "-c" || shell != name {
            return None;
        }
        let mut rest = line.to_str()?;
        let mut text = String::new();
        while let Some(at) = rest.find("\"$") {
            text.push_str(&rest[..at]);
            let (number, after) = rest[at + 2..].split_once('"')?;
            let number = number.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(number);
            // Another use of a variable is the user's.
            let Ok(number) = number.parse::<usize>() else {
                text.push_str("\"$");
                rest = &rest[at + 2..];
                continue;
            };
            text.push_str(&shell_word(values.get(number.checked_sub(1)?)?));
            rest = after;
        }
        Some(text + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(pid: u32, leads_group: bool, age: u64, environment: &[&str]) -> ChildProcess {
        let environment = environment.iter().map(Into::into).collect();
        let age = Duration::from_secs(age);
        ChildProcess { pid, leads_group, age, environment, ..ChildProcess::default() }
    }

    fn found(children: Vec<ChildProcess>) -> Vec<(Option<u64>, Option<u64>, u32)> {
        let jobs = identified(children, VARIABLES, Some(9));
        jobs.iter().map(|it| (it.job, it.slot, it.pid)).collect()
    }

    #[test]
    fn jobs_without_pidfds_are_identified_by_their_environment() {
        let children = vec![
            child(10, true, 9, &["A=MINDER_JOB=7", "MINDER_JOB=2", "MINDER_SLOT=1"]),
            child(11, true, 9, &["PATH=/bin"]),
            child(12, false, 9, &[]),
            // An orphan of job 2, and what is left of an earlier try of job 3.
            child(13, false, 5, &["MINDER_JOB=2", "MINDER_SLOT=1"]),
            child(14, true, 50, &["MINDER_JOB=3", "MINDER_SLOT=2"]),
            child(15, true, 1, &["MINDER_JOB=3", "MINDER_SLOT=2"]),
            child(16, true, 9, &["MINDER_JOB=x", "MINDER_SLOT=7"]),
            child(17, true, 9, &["MINDER_JOB="]),
        ];
        let jobs = found(children);
        assert_eq!(
            jobs,
            [(Some(2), Some(1), 10), (Some(3), Some(2), 15), (None, None, 11), (None, None, 16)]
        );
    }

    #[test]
    fn jobs_with_pidfds_are_those() {
        let held =
            |pid, environment: &[&str]| ChildProcess { is_held: true, ..child(pid, true, 9, environment) };
        let children = vec![
            held(10, &["MINDER_JOB=1", "MINDER_SLOT=1"]),
            // Their environments are empty, or have a number that two jobs or no job can have.
            held(11, &[]),
            held(12, &["MINDER_JOB=4", "MINDER_SLOT=3"]),
            held(13, &["MINDER_JOB=4", "MINDER_SLOT=3"]),
            held(14, &["MINDER_JOB=10"]),
            // The command of --limit, an orphan of job 1, and a daemon that the runner has adopted.
            held(15, &["MINDER_JOB=", "MINDER_SLOT="]),
            child(16, true, 5, &["MINDER_JOB=1"]),
            child(17, true, 5, &["PATH=/bin"]),
        ];
        let jobs = found(children);
        assert_eq!(jobs[0], (Some(1), Some(1), 10));
        assert_eq!(
            jobs[1..].iter().map(|job| (job.0, job.2)).collect::<Vec<_>>(),
            [11, 14, 12, 13].map(|pid| (None, pid))
        );
    }

    #[test]
    fn command_is_the_line_of_the_shell() {
        let command = |words: &[&str]| {
            let argv = words.iter().map(Into::into).collect();
            let child = ChildProcess { argv, ..child(1, true, 0, &["MINDER_JOB=1"]) };
            identified(vec![child], VARIABLES, None)[0].command()
        };
        let sh = "/bin/sh";
        assert_eq!(command(&["sleep", "3", "a b"]), "sleep 3 'a b'");
        assert_eq!(command(&[sh, "-c", r#"cat "$1" | sort "${2}""#, sh, "a b", "c"]), "cat 'a b' | sort c");
        assert_eq!(command(&[sh, "-c", r#"echo "$HOME" "$1""#, sh, "x"]), r#"echo "$HOME" x"#);
        assert_eq!(command(&[sh, "-c", r#"echo "$1""#, sh]), r#"/bin/sh -c 'echo "$1"' /bin/sh"#);
        assert_eq!(command(&["sh", "-c", "true"]), "sh -c true");
    }
}
