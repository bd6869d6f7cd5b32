//! The state of one running job on its worker thread.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use minder::jobs::Attempt;
use minder::{ChildId, ExitInfo, ExitStatus, Outcome};
use minder_os::signals;
use minder_os::terminal::TerminalModes;
use minder_record::event::{JobFinished, OsBytes, since_1970};

use super::job_output::JobOutput;
use crate::admission::JobPermit;
use crate::memory_cap::JobCgroup;
use crate::queue::Task;
use crate::report::EndCause;
use crate::results::TemplateFiles;
use crate::splitter::StdinFeeder;

/// A job between its start and its event.
#[derive(Debug)]
pub(crate) struct RunningJob {
    pub(crate) number: u64,
    pub(crate) child: Option<ChildId>,
    pub(crate) output: JobOutput,
    /// `true` if its process has exited. Its output may not have been read yet.
    pub(crate) has_exited: bool,
    pub(crate) started_at: Instant,
    /// The wall time, once the job has finished.
    pub(crate) wall_time: Option<Duration>,
    start_time: SystemTime,
    /// `true` if minder killed it because minder itself failed. Its incomplete output is not shown.
    pub(crate) is_interrupted: bool,
    /// Copies of `--template` files, which are removed with the job.
    pub(crate) copies: TemplateFiles,
    /// `true` if a failure of this attempt is final.
    pub(crate) is_last_attempt: bool,
    /// The longest time that it may run.
    pub(crate) timeout: Option<Duration>,
    /// `true` if its event was held back, in case the run ends as well.
    pub(crate) is_held: bool,
    /// `true` if it was killed to run again later.
    pub(crate) is_requeued: bool,
    /// `true` if it was asked to exit because it stopped at the terminal.
    pub(crate) wants_terminal: bool,
    /// `true` if it has finished and did its work: it exited with 0, and minder had not asked it to
    /// exit.
    pub(crate) succeeded: bool,
    /// The rest of its standard input. Boxed, because few runs have one, as the modes below.
    pub(crate) stdin: Option<Box<StdinFeeder>>,
    /// Files that are removed with the job.
    pub(crate) files: Vec<PathBuf>,
    /// The modes that the terminal had before the job, if it uses it.
    pub(crate) terminal_modes: Option<Box<TerminalModes>>,
    /// The cgroup that limits its memory, until it has ended.
    pub(crate) cgroup: Option<Box<JobCgroup>>,
    /// The permission to run, which is given back when the job ends.
    pub(crate) permit: Option<JobPermit>,
}

impl RunningJob {
    /// Returns a job that is about to start.
    pub(crate) fn new(number: u64) -> Box<Self> {
        let started_at = Instant::now();
        let start_time = SystemTime::now();
        // With the memory first, and no call between the fields, the job is made in its place.
        let job = Box::new_uninit();
        Box::write(
            job,
            Self {
                number,
                child: None,
                output: JobOutput::default(),
                has_exited: false,
                started_at,
                wall_time: None,
                start_time,
                is_interrupted: false,
                copies: TemplateFiles::default(),
                is_last_attempt: true,
                timeout: None,
                is_held: false,
                is_requeued: false,
                wants_terminal: false,
                succeeded: false,
                stdin: None,
                files: Vec::new(),
                terminal_modes: None,
                cgroup: None,
                permit: None,
            },
        )
    }

    /// Returns the job with its child, once it has started.
    pub(crate) fn with_child(&mut self) -> Option<(&mut Self, ChildId)> {
        let child = self.child?;
        Some((self, child))
    }

    pub(crate) fn wall(&self) -> Duration {
        self.wall_time.unwrap_or_else(|| self.started_at.elapsed())
    }

    /// Returns why minder ended the job, or [`EndCause::Own`].
    pub(crate) fn cause(&self, outcome: &Outcome, is_halted: bool) -> EndCause {
        match self.timeout {
            // A job that exited just before it was asked to has ended on its own.
            _ if self.is_requeued && outcome.killed => EndCause::Memory,
            Some(limit) if outcome.timed_out => EndCause::TimedOut(limit),
            _ if let Some(max) = self.exceeded_memory(outcome) => EndCause::MemoryMax(max),
            _ if self.wants_terminal && outcome.killed => EndCause::Terminal,
            _ if is_halted => EndCause::Halted,
            _ => EndCause::Own,
        }
    }

    /// Returns its limit of memory if the kernel killed it for that. The signal is SIGKILL then. Another end
    /// is that of the job, which may have had a cgroup with another limit for a part of its processes.
    fn exceeded_memory(&self, outcome: &Outcome) -> Option<u64> {
        let cgroup = self.cgroup.as_deref()?;
        let is_kill = outcome.exit.status.signal().is_some_and(|by| signals::number("KILL") == Some(by));
        (is_kill && cgroup.was_killed()).then(|| cgroup.max())
    }

    /// Returns its journal event, without the place of its output and without the cause of its end.
    pub(crate) fn event(&self, args: Vec<OsBytes>, exit: ExitInfo) -> JobFinished {
        let (code, signal) = match exit.status {
            ExitStatus::Exited(code) => (Some(code), None),
            ExitStatus::Signaled { signal, .. } => (None, Some(signal)),
            _ => (None, None),
        };
        let main_thread = exit.usage.and_then(|usage| usage.main_thread);
        let cpu = exit.usage.map_or(0.0, |usage| (usage.user + usage.system).as_secs_f64());
        JobFinished {
            job: self.number,
            args,
            at: since_1970(self.start_time),
            wall: self.wall().as_secs_f64(),
            user: exit.usage.map(|usage| usage.user.as_secs_f64()),
            system: exit.usage.map(|usage| usage.system.as_secs_f64()),
            ready: main_thread.map(|times| times.ready.as_secs_f64()),
            main: main_thread.map(|times| times.running.as_secs_f64()).filter(|main| *main < 0.9 * cpu),
            rss: exit.usage.and_then(|usage| usage.max_rss),
            exit: code,
            signal,
            error: None,
            out: self.output.written[0],
            err: self.output.written[1],
            sent: self.stdin.as_ref().map_or(0, |feeder| feeder.sent),
            block_at: 0,
            block_len: 0,
            block_crc: None,
            leaked: false,
            timed_out: false,
            kept: Vec::new(),
            stored: Vec::new(),
            tail: None,
            out_tail: None,
            attempts: None,
            cause: None,
        }
    }
}

/// The end of an attempt of a job.
#[derive(Clone, Copy)]
pub(super) struct AttemptEnd<'a> {
    pub(super) attempt: Attempt,
    pub(super) task: &'a Task,
    pub(super) outcome: &'a Outcome,
    pub(super) cause: EndCause,
}

/// Returns the event of a job that could not be started.
pub(crate) fn unstarted_event(number: u64, args: Vec<OsBytes>, why: &str) -> JobFinished {
    let at = since_1970(SystemTime::now());
    JobFinished { job: number, args, at, error: Some(why.to_owned()), ..JobFinished::default() }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        for path in &self.files {
            // If this fails, the file is removed when the record is pruned.
            let _ = std::fs::remove_file(path);
        }
    }
}
