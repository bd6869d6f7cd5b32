//! The messages of the engine to a person: one line each.
//!
//! [`Display`](fmt::Display) gives the line, without the name of the program before it.

use std::fmt;
use std::path::PathBuf;

use minder::Signal;

use crate::text::{count, escape};

/// One thing that a person should know about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// An agent has something to say, such as that a host was lost.
    Agent {
        /// What it says, and the name of the host.
        line: String,
    },
    /// A job could not be started, or its command line could not be made.
    CannotRun {
        /// The job's command line, or `job N`.
        job: String,
        /// Why.
        reason: String,
    },
    /// A job was stopped by the kernel because it used the terminal; it is terminated.
    NeedsTerminal {
        /// The job's command line.
        job: String,
        /// `true` for the first one of the run: the hint is named once.
        is_first: bool,
    },
    /// A signal asked the run to end.
    Interrupted {
        /// The signal.
        signal: Signal,
        /// The number of jobs that were running.
        running: u64,
        /// `true` if they were asked to end; otherwise they were killed.
        asked: bool,
    },
    /// A signal was to detach from the agents of a run, which lack input.
    CannotDetach,
    /// The halt policy lets no more jobs start, and waits for the running ones.
    Halting {
        /// The number of running jobs.
        running: u64,
    },
    /// A record, or the records of a job, did not fit into a block of `--block`: blocks became larger.
    BlockGrew {
        /// The size that was asked for, in bytes.
        from: u64,
        /// The size now.
        to: u64,
    },
    /// The guardian processes could not be started.
    NoGuardians {
        /// Why.
        reason: String,
    },
    /// The requested wait backend cannot be used.
    BackendRefused {
        /// Its name.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// All of the input is read before the first job starts.
    ReadingAllInput,
    /// No duration is known by which jobs could be ordered.
    NoHistory,
    /// The first three lines of a file of arguments end in CR-NL.
    CarriageReturns,
    /// A line of a file of arguments looks like a comment, and was a job.
    CommentLines,
    /// Arguments are read from the terminal.
    ReadingTerminal,
    /// Jobs get no cgroup, so the address space of each process is limited.
    AddressSpaceLimited {
        /// Why.
        reason: String,
        /// `true` if the system can delegate a cgroup.
        is_available: bool,
    },
    /// The make jobserver is not used for jobs that need each other.
    JobserverIgnored {
        /// The flag that makes the jobs need each other.
        flag: &'static str,
    },
    /// The make jobserver cannot be used.
    JobserverUnavailable {
        /// The whole line.
        reason: String,
    },
    /// A condition for starting jobs cannot be measured, or a number of jobs cannot be read.
    Condition {
        /// The whole line.
        line: String,
    },
    /// The run leaves no record.
    NoRecord {
        /// Why.
        reason: String,
    },
    /// An earlier run is resumed, or nothing of it is left.
    Resumption {
        /// The whole line.
        line: String,
    },
    /// Failed jobs were to run again, and no job has failed.
    NothingToRetry,
    /// There are not as many names as jobs, which was not known before the input was read.
    WrongNames {
        /// The whole line.
        line: String,
    },
    /// The journal of an attempt is gone, or the directory of an agent that has claimed jobs.
    PartMissing {
        /// Such as `attempt 2`.
        what: String,
        /// The directory of the run.
        dir: PathBuf,
    },
    /// A journal or joblog has lines that cannot be read.
    Damaged {
        /// The journal or joblog that is damaged.
        what: String,
        /// The damage.
        damage: String,
    },
    /// The last line of a joblog was incomplete and was removed.
    JoblogTruncated {
        /// The joblog.
        path: PathBuf,
    },
    /// The directory of the run was removed while the run was writing to it.
    RecordRemoved {
        /// The directory.
        dir: PathBuf,
    },
    /// The retention policy removed runs that were not finished.
    Pruned {
        /// Their ids.
        runs: Vec<String>,
    },
    /// The directory of all runs could be changed by other users; its mode was corrected.
    ModeCorrected {
        /// The directory.
        dir: PathBuf,
    },
    /// A reader was given up that takes nothing, in a run without a record.
    OutputLost,
    /// Kept output of earlier attempts cannot be read.
    OutputUnreadable {
        /// `job 3` or `jobs 3-5, 9`.
        jobs: String,
        /// The first file that could not be read, or `None` if it is not known.
        file: Option<String>,
        /// Why; `None` for the jobs that are only counted.
        reason: Option<String>,
        /// The consequence for the jobs.
        consequence: &'static str,
    },
}

impl Notice {
    /// Returns `true` for a line that `--quiet` suppresses: it describes what minder does, and
    /// reports no failure of a job or a file.
    pub fn is_suppressed_by_quiet(&self) -> bool {
        matches!(
            self,
            Self::Interrupted { .. }
                | Self::Halting { .. }
                | Self::BlockGrew { .. }
                | Self::NoGuardians { .. }
                | Self::BackendRefused { .. }
                | Self::ReadingAllInput
                | Self::NoHistory
                | Self::CarriageReturns
                | Self::CommentLines
                | Self::AddressSpaceLimited { .. }
                | Self::JobserverIgnored { .. }
                | Self::JobserverUnavailable { .. }
                | Self::NoRecord { .. }
                | Self::NothingToRetry
                | Self::Pruned { .. }
        )
    }
}

const CARRIAGE_RETURNS: &str = "the first three values end in CR-NL, as in files from Windows, and the CR \
                                is part of them (`-d '\\r\\n'` removes it)";
const OUTPUT_LOST: &str = "cannot write the rest of the output: its reader takes nothing, and without a \
                           record it is lost";
const CANNOT_DETACH: &str =
    "cannot detach from the run: its input is still being read (a second Ctrl-C cancels it)";
const COMMENT_LINES: &str = "lines that begin with `#` were arguments (--skip-comments leaves them out)";

const TERMINAL: &str = ": `--tty` gives jobs the terminal, one at a time; `--pty` gives each job a new one, \
                        without input; or pass its input in a file, or the answer as an argument";
const DELEGATE: &str =
    " (`systemd-run --user --scope -p Delegate=yes minder run …` limits the memory of each job)";

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent { line } => f.write_str(&escape(line.as_bytes())),
            Self::CannotRun { job, reason } => write!(f, "cannot run `{job}`: {reason}"),
            Self::NeedsTerminal { job, is_first } => {
                write!(f, "`{job}` uses the terminal, which jobs do not have, and is terminated")?;
                f.write_str(if *is_first { TERMINAL } else { "" })
            }
            Self::Interrupted { signal, running, asked } => write_interruption(f, *signal, *running, *asked),
            Self::CannotDetach => f.write_str(CANNOT_DETACH),
            Self::Halting { running } => {
                write!(f, "Starting no more jobs. Waiting for {running} jobs to finish.")
            }
            Self::BlockGrew { from, to } => write_growth(f, *from, *to),
            Self::NoGuardians { reason } => write!(
                f,
                "no guardians: {reason}; after `kill -9` of minder, descendants of its jobs would keep \
                 running"
            ),
            Self::BackendRefused { name, reason } => write!(
                f,
                "the wait mechanism `{name}` is refused here: {reason}; the best of the others is used"
            ),
            Self::ReadingAllInput => {
                f.write_str("reading all of the input first, for its order or its number of jobs")
            }
            Self::NoHistory => f.write_str(
                "no earlier run of this command is recorded, so its jobs start in the order of the input",
            ),
            Self::CarriageReturns => f.write_str(CARRIAGE_RETURNS),
            Self::CommentLines => f.write_str(COMMENT_LINES),
            Self::ReadingTerminal => {
                f.write_str("reading arguments from the terminal, one per line; Ctrl-D ends them")
            }
            Self::AddressSpaceLimited { reason, is_available } => {
                write_address_space(f, reason, *is_available)
            }
            Self::JobserverIgnored { flag } => {
                write!(f, "the jobs of {flag} run all at once: not by the build's jobserver")
            }
            Self::JobserverUnavailable { reason: line }
            | Self::Condition { line }
            | Self::Resumption { line }
            | Self::WrongNames { line } => f.write_str(line),
            Self::NoRecord { reason } => {
                write!(f, "no record is kept: {reason} (--no-record suppresses this message)")
            }
            Self::NothingToRetry => f.write_str("no job has failed: nothing was run"),
            Self::PartMissing { what, dir } => write!(
                f,
                "{what} of the record in `{}` is missing: what only it ran, runs again",
                dir.display()
            ),
            Self::Damaged { what, damage } => write!(f, "{what} is damaged: {damage}"),
            Self::JoblogTruncated { path } => {
                write!(f, "the last line of the joblog `{}` was incomplete and was removed", path.display())
            }
            Self::RecordRemoved { dir } => {
                write!(f, "the record of this run is gone: `{}` was removed while it ran", dir.display())
            }
            Self::Pruned { runs } => write_pruned(f, runs),
            Self::ModeCorrected { dir } => {
                write!(f, "other users could change `{}`: its mode is 0700 now", dir.display())
            }
            Self::OutputLost => f.write_str(OUTPUT_LOST),
            Self::OutputUnreadable { jobs, file, reason, consequence } => {
                write_unreadable(f, jobs, file.as_deref(), reason.as_deref(), consequence)
            }
        }
    }
}

fn write_interruption(f: &mut fmt::Formatter<'_>, signal: Signal, running: u64, asked: bool) -> fmt::Result {
    let name = signal_text(signal);
    if !asked {
        return write!(f, "{name}: killed {}", count(running, "running job"));
    }
    if running == 0 {
        return write!(f, "{name}: no job runs");
    }
    let jobs = count(running, "job");
    let again = match signal {
        Signal::INT => "Ctrl-C again kills them",
        _ => "a second signal kills them",
    };
    write!(f, "{name}: asked {jobs} to stop; {again}")
}

fn write_address_space(f: &mut fmt::Formatter<'_>, reason: &str, is_available: bool) -> fmt::Result {
    write!(f, "--memory-max limits the address space of each process: {reason}")?;
    f.write_str(if is_available { DELEGATE } else { "" })
}

fn write_growth(f: &mut fmt::Formatter<'_>, from: u64, to: u64) -> fmt::Result {
    write!(
        f,
        "the records of a job are longer than the block of {from} bytes: blocks have up to {to} bytes \
         (--block {to} avoids this)"
    )
}

fn write_unreadable(
    f: &mut fmt::Formatter<'_>,
    jobs: &str,
    file: Option<&str>,
    reason: Option<&str>,
    consequence: &str,
) -> fmt::Result {
    let file = file.map(|file| format!(": `{file}`")).unwrap_or_default();
    let reason = reason.map(|reason| format!(": {}", escape(reason.as_bytes()))).unwrap_or_default();
    write!(f, "cannot read the kept output of {jobs}{file}{reason}{consequence}")
}

fn signal_text(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "interrupted",
        Signal::HUP => "hung up",
        _ => "terminating",
    }
}

fn write_pruned(f: &mut fmt::Formatter<'_>, runs: &[String]) -> fmt::Result {
    const NAMED_MAX: usize = 5;
    let named = runs.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = if runs.len() > NAMED_MAX { ", …" } else { "" };
    let runs = count(runs.len() as u64, "old run");
    write!(
        f,
        "removed the records of {runs} that could have been resumed: {named}{more} (see `minder log --help`, \
         --prune)"
    )
}
