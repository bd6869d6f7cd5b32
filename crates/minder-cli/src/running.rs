//! The jobs that a run runs now.
//!
//! The record has only the ends of jobs. A job that runs is a child of the process that works on the
//! run, and its number and slot are in its environment. So a run writes nothing for this.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use minder_os::processes::{self, ChildProcess};
use minder_record::event::{JobFinished, OsBytes, now};
use minder_record::manifest::Manifest;
use minder_record::store;
use minder_template::shell_word;

use crate::recorded;
use crate::ui::{message, os_error_text};

/// The variables with the number and the slot of a job.
const VARIABLES: [&str; 2] = ["MINDER_JOB", "MINDER_SLOT"];
/// Those of a command line of GNU parallel.
const PARALLEL_VARIABLES: [&str; 2] = ["PARALLEL_SEQ", "PARALLEL_JOBSLOT"];

/// A job that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningJob {
    pub(crate) job: u64,
    pub(crate) slot: Option<u64>,
    pub(crate) pid: u32,
    /// The time since its start.
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

/// Returns the jobs of a run that run now, in the order of their numbers. `pid` is the process that works
/// on the run, as its journal has it.
///
/// # Errors
/// They cannot be seen.
pub(crate) fn running_jobs(
    dir: &Path,
    manifest: Option<&Manifest>,
    pid: u32,
) -> Result<Vec<RunningJob>, Unseen> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::Unsupported => Unseen::Unsupported,
        _ => Unseen::Here(format!("running jobs cannot be seen: {}", os_error_text(&error))),
    };
    // The pid may be one of another container, or may belong to another process by now.
    let lock = store::lock_path(dir).metadata().map_err(cannot)?;
    let is_it = match processes::has_open(pid, &lock) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        known => known.map_err(cannot)?,
    };
    if !is_it {
        let text = format!("running jobs cannot be seen: process {pid} is not the one of the run");
        return Err(Unseen::Here(text));
    }
    let typed = manifest.and_then(|manifest| recorded::typed_flags(manifest).ok()).unwrap_or_default();
    let is_parallel = typed.iter().any(|flag| flag == "--parallel-env");
    let names = if is_parallel { PARALLEL_VARIABLES } else { VARIABLES };
    Ok(identified(processes::children(pid).map_err(cannot)?, names))
}

/// Returns the jobs among the children of a runner. If two children have the same number, one is an
/// orphan of the job: a job leads its process group, and what is left of an earlier try is older.
fn identified(children: Vec<ChildProcess>, [job, slot]: [&str; 2]) -> Vec<RunningJob> {
    let mut found: BTreeMap<u64, ChildProcess> = BTreeMap::new();
    let rank = |child: &ChildProcess| (child.leads_group, std::cmp::Reverse(child.age));
    for child in children {
        let Some(number) = child.variable(job).and_then(|text| text.parse().ok()) else { continue };
        match found.get(&number) {
            Some(other) if rank(other) >= rank(&child) => (),
            _ => drop(found.insert(number, child)),
        }
    }
    let running = |(job, child): (u64, ChildProcess)| RunningJob {
        job,
        slot: child.variable(slot).and_then(|text| text.parse().ok()),
        pid: child.pid,
        age: child.age,
        argv: child.argv,
    };
    found.into_iter().map(running).collect()
}

impl RunningJob {
    /// Returns whether the job has ended by this event: a process that is older than that is an orphan
    /// of it.
    pub(crate) fn has_ended(&self, event: &JobFinished) -> bool {
        now() - self.age.as_secs_f64() < event.at + event.wall
    }

    /// Returns its command for people, as it can be pasted into a shell.
    pub(crate) fn command(&self) -> String {
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
        ChildProcess { pid, leads_group, age: Duration::from_secs(age), argv: Vec::new(), environment }
    }

    #[test]
    fn jobs_are_identified_by_their_environment() {
        let children = vec![
            child(10, true, 9, &["A=MINDER_JOB=7", "MINDER_JOB=2", "MINDER_SLOT=1"]),
            child(11, true, 9, &["PATH=/bin"]),
            child(12, true, 9, &[]),
            // An orphan of job 2, and what is left of an earlier try of job 3.
            child(13, false, 5, &["MINDER_JOB=2", "MINDER_SLOT=1"]),
            child(14, true, 50, &["MINDER_JOB=3", "MINDER_SLOT=2"]),
            child(15, true, 1, &["MINDER_JOB=3", "MINDER_SLOT=2"]),
            child(16, true, 9, &["MINDER_JOB=x"]),
        ];
        let found: Vec<_> =
            identified(children, VARIABLES).iter().map(|it| (it.job, it.slot, it.pid)).collect();
        assert_eq!(found, [(2, Some(1), 10), (3, Some(2), 15)]);
    }

    #[test]
    fn command_is_the_line_of_the_shell() {
        let command = |words: &[&str]| {
            let argv = words.iter().map(Into::into).collect();
            RunningJob { job: 1, slot: None, pid: 1, age: Duration::ZERO, argv }.command()
        };
        let sh = "/bin/sh";
        assert_eq!(command(&["sleep", "3", "a b"]), "sleep 3 'a b'");
        assert_eq!(command(&[sh, "-c", r#"cat "$1" | sort "${2}""#, sh, "a b", "c"]), "cat 'a b' | sort c");
        assert_eq!(command(&[sh, "-c", r#"echo "$HOME" "$1""#, sh, "x"]), r#"echo "$HOME" x"#);
        assert_eq!(command(&[sh, "-c", r#"echo "$1""#, sh]), r#"/bin/sh -c 'echo "$1"' /bin/sh"#);
        assert_eq!(command(&["sh", "-c", "true"]), "sh -c true");
    }
}
