//! The configuration of a run: plain data, complete before anything is opened or started.
//!
//! All text was parsed before a [`RunConfig`] exists. The engine opens the files, directories and
//! streams that it names.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use minder::Termination;
use minder::jobs::HaltPolicy;
use minder_cluster::ssh::Host;
use minder_record::manifest::InputSource;
use minder_template::Template;

use crate::conditions::Conditions;
use crate::jobs_setting::JobsSetting;
use crate::splitter::{Distribution, SplitterConfig};

/// The key in the manifest of a run that continued a joblog. What had finished before it is known
/// only to that joblog.
pub const BY_JOBLOG: &str = "by_joblog";

/// The key in the manifest of the number of slots of the first attempt, for runs whose jobs read
/// blocks. Old versions did not record it.
pub const SLOTS: &str = "slots";

/// The least limit of the memory of a job. Until a job executes its program, the kernel kills it for no
/// limit, since it shares the memory of minder. With less than a few pages left (measured with 100 KiB), it
/// would never do so.
pub const MEMORY_MAX_LEAST: u64 = 1 << 20;

/// Everything that a run has to know.
#[derive(Debug)]
pub struct RunConfig {
    /// The command line of a job.
    pub template: Template,
    /// The number of jobs that run at once.
    pub slots: JobsSetting,
    /// The order in which jobs start.
    pub order: OrderConfig,
    /// The number of jobs, if the user states it.
    pub total: Option<u64>,
    /// The way in which jobs read the input, if they do.
    pub pipe: Option<PipeConfig>,
    /// Time-outs, retries, conditions, environment.
    pub control: Control,
    /// `true` if one job takes several records.
    pub batches_arguments: bool,
    /// The rule for the exit status of the run.
    pub exit_status: ExitStatusRule,
    /// `true` if jobs get the variables of GNU parallel (`PARALLEL_SEQ` and others).
    pub parallel_env: bool,
    /// The pid that a user sees: that of the process that installed the guard.
    pub pid: u32,
    /// The shell for the user's command lines, if it is not the default one.
    pub shell: Option<OsString>,
    /// The time for which a finished job's output may stay open. `None`: until it is closed.
    pub leak_timeout: Option<Duration>,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// The time for which each result is held back, if the end of the run may reach the processes of
    /// a job before it reaches the job and this process. A result that is held when the run is ended
    /// is not recorded, and the job runs again.
    pub hold_results: Option<Duration>,
    /// The wait backend, if it is not the best one.
    pub backend: Option<minder::Backend>,
    /// `true` if guardian processes kill what is left after a SIGKILL.
    pub guardians: bool,
    /// `true` if each job's output has a color.
    pub color_jobs: bool,
    /// `true` if only whole lines are colored.
    pub color_lines: bool,
    /// `true` if the output of failed jobs is colored. Output that is written while the job runs is
    /// not: its result is not known yet.
    pub color_failed: bool,
    /// `true` if the command line of each job is reported before it starts.
    pub verbose: bool,
    /// `true` if the command line of each job is written before its output.
    pub print: bool,
    /// The way in which output is written.
    pub view: OutputView,
    /// The times at which the output of finished jobs is written.
    pub times: OutputTimes,
    /// The text before each line.
    pub tag: Option<Template>,
    /// The names of the jobs in their order, or nothing. They stand before each line in place of the tag.
    pub names: Vec<String>,
    /// Files in addition to standard output.
    pub files: OutputFiles,
    /// `true` if each job gets a pseudo-terminal.
    pub pty: bool,
    /// `true` if jobs write to files instead of pipes.
    pub spool: bool,
    /// The most bytes of output in memory.
    pub buffer: usize,
    /// The directory for output that does not fit into memory.
    pub tmpdir: Option<PathBuf>,
    /// The record of the run.
    pub record: RecordConfig,
}

impl RunConfig {
    /// Removes what concerns the output of jobs, their order, and the end of the run: another process shows
    /// the output that this one saves, and ends the run.
    pub fn only_save(&mut self) {
        self.order = OrderConfig::Given;
        self.total = None;
        self.control.halt = None;
        self.exit_status = ExitStatusRule::Parallel;
        self.color_jobs = false;
        self.color_failed = false;
        self.verbose = false;
        self.print = false;
        self.view = OutputView::Grouped;
        self.times = OutputTimes::default();
        self.tag = None;
        self.names.clear();
        self.files.results = None;
        self.files.names = false;
        self.record.joblog = None;
    }

    /// Returns the name that the user gave to a job. Jobs have numbers from 1 on.
    pub(crate) fn name_of(&self, number: u64) -> Option<&str> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.names.get(index).map(String::as_str)
    }
}

/// The rule for the exit status of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitStatusRule {
    /// GNU parallel's: the number of failed jobs.
    #[default]
    Parallel,
    /// That of xargs: a status for each kind of failure.
    Xargs,
}

/// The standard input of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobStdin {
    /// Nothing.
    #[default]
    Null,
    /// The standard input of this process.
    Inherit,
    /// This file. Each job reads it from the beginning.
    File(PathBuf),
}

/// The way in which the output of jobs is written to standard output and standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputView {
    /// The whole output of a job when it has finished.
    Grouped,
    /// The same, in the order of the input.
    Ordered,
    /// Whole lines as they arrive.
    Lines,
    /// Jobs inherit standard output and standard error.
    Straight,
}

/// The times at which the output of finished jobs is written to standard output and standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputTimes {
    /// For jobs that succeeded.
    pub success: OutputTime,
    /// For jobs that failed.
    pub failure: OutputTime,
    /// For jobs that the end of the run cut off: they neither succeeded nor failed.
    pub cancelled: OutputTime,
}

impl OutputTimes {
    /// Returns `true` if output does not have to wait until the result of its job is known.
    pub(crate) fn are_immediate(self) -> bool {
        self == Self::default()
    }
}

/// The time at which the output of a finished job is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputTime {
    /// At the job's turn.
    #[default]
    Immediate,
    /// At the job's turn, and again after the last job.
    ImmediateFinal,
    /// After the last job.
    Final,
    /// Not at all.
    Never,
}

impl OutputTime {
    /// Returns `true` if the output is written when it is the job's turn.
    pub(crate) fn is_immediate(self) -> bool {
        matches!(self, Self::Immediate | Self::ImmediateFinal)
    }

    /// Returns `true` if the output is written after the last job.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::ImmediateFinal | Self::Final)
    }
}

/// The jobs of an earlier run that are to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeMode {
    /// Those that did not finish.
    Rest,
    /// Those that did not finish, and those that failed.
    RestAndFailed,
    /// Those that failed.
    Failed,
}

/// The settings of the record, and the earlier record that is continued.
#[derive(Debug)]
pub struct RecordConfig {
    /// `true` if the run leaves a record.
    pub keep: bool,
    /// `true` if each step waits for the disk.
    pub sync: bool,
    /// `true` if the output of jobs stays in the record after it was shown.
    pub keep_output: bool,
    /// `true` if arguments are kept out of the record.
    pub redact: bool,
    /// The joblog, as an absolute path.
    pub joblog: Option<PathBuf>,
    /// `true` if an existing joblog is appended to even if the run is not resumed.
    pub joblog_append: bool,
    /// The jobs to run, if not all.
    pub mode: Option<ResumeMode>,
    /// `true` if jobs whose kept output is lost count as done.
    pub skip_lost: bool,
    /// The directory of the run that is resumed.
    pub run: Option<PathBuf>,
    /// The agents that run the jobs of this run, if this process does not.
    pub agents: Option<AgentsConfig>,
    /// How this process coordinates them.
    pub coordination: Coordination,
    /// The run of another process, if this one works on it as an agent.
    pub agent: Option<AgentConfig>,
    /// `true` if the run that is resumed is named before its jobs start.
    pub announces: bool,
    /// `true` if the joblog decides which jobs are done.
    pub by_joblog: bool,
    /// The number of slots of the first attempt of that run, if its record has it.
    pub first_slots: Option<u64>,
    /// For the manifest: the working directory.
    pub cwd: PathBuf,
    /// For the manifest: the command.
    pub command: Vec<OsString>,
    /// For the manifest: separators and arguments after the command.
    pub trailing: Vec<OsString>,
    /// For the manifest: files of arguments, as absolute paths.
    pub files: Vec<PathBuf>,
    /// The source from which standard input can be read again, if it is read.
    pub stdin: Option<InputSource>,
    /// For the manifest: the flags as they were typed.
    pub typed: Vec<OsString>,
}

/// The agents of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsConfig {
    /// Where each agent runs its jobs.
    pub places: Vec<Place>,
    /// ssh, with its options.
    pub ssh: Vec<OsString>,
    /// The program of an agent: minder.
    pub program: PathBuf,
    /// An agent is lost if its beat has not changed for this time.
    pub lost_after: Duration,
}

/// Where an agent runs its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A host that is reached by ssh. `None`: this machine.
    pub host: Option<Host>,
    /// How many jobs it runs at once, in place of what the run asks for.
    pub jobs: Option<String>,
}

/// What a coordinator of agents does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coordination {
    /// `true` if it starts no agent: it takes the results of those that an earlier coordinator has started.
    pub attaches: bool,
    /// `true` if it ends when its agents work and have all of the input.
    pub detaches: bool,
    /// What Ctrl-C does.
    pub on_interrupt: OnInterrupt,
}

/// What Ctrl-C does to a run whose jobs run on agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupt {
    /// It ends the agents, and the run.
    #[default]
    Cancel,
    /// It ends the coordinator. The agents continue.
    Detach,
    /// The user is asked on the terminal. Without one, it ends the run.
    Ask,
}

/// A run that other processes work on, too. This process is one of its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The directory of the run.
    pub run: PathBuf,
    /// The attempt that submitted the jobs.
    pub attempt: u32,
    /// Another agent is lost if its beat has not changed for this time.
    pub lost_after: Duration,
    /// The name by which the user knows this machine, if the agent gets jobs by its standard input, from a
    /// link. The directory is a private one then.
    pub login: Option<String>,
    /// The files that such an agent removes at the end.
    pub removed: Vec<PathBuf>,
}

/// The order in which jobs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderConfig {
    /// That of the input.
    Given,
    /// A random one, drawn from this seed.
    Random(u64),
    /// The shortest first, by earlier runs of the same command.
    Shortest,
    /// The longest first.
    Longest,
}

/// The way in which the jobs read standard input or files, with `--pipe` or `--pipe-part`.
#[derive(Clone, Debug)]
pub struct PipeConfig {
    /// The rules by which the input is cut and distributed.
    pub splitter: SplitterConfig,
    /// The inputs, in the order in which they are read.
    pub inputs: Vec<PipeInput>,
    /// `true` if jobs read ranges of files directly (`--pipe-part`). All inputs are files then.
    pub ranges: bool,
    /// The way in which a job receives its block.
    pub delivery: InputDelivery,
    /// `true` if jobs have arguments in addition to their blocks.
    pub has_values: bool,
    /// `true` if such an argument is the job's command.
    pub runs_values: bool,
    /// `true` if a dry run prints how a shell would read each block.
    pub print_blocks: bool,
}

/// One input of a run whose jobs read blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipeInput {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl PipeConfig {
    /// Returns the flag with which the same input is distributed differently each time, so that a
    /// run cannot be resumed.
    pub fn unrepeatable(&self) -> Option<&'static str> {
        match (&self.splitter.spread, self.splitter.block_timeout) {
            (Distribution::RoundRobin, _) => Some("--round-robin"),
            (_, Some(_)) => Some("--block-timeout"),
            _ => None,
        }
    }

    /// Returns the flag whose jobs all run at once, since each gets its input bit by bit.
    pub fn stream_flag(&self) -> Option<&'static str> {
        self.splitter.spread.flag()
    }

    /// Returns `true` if every job reads all of the input.
    pub fn is_tee(&self) -> bool {
        self.splitter.spread == Distribution::Tee
    }
}

/// The way in which a job receives its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputDelivery {
    /// On standard input.
    Stdin,
    /// As a file, whose name is an argument.
    File,
    /// As a named pipe, whose name is an argument.
    Fifo,
}

/// Time-outs, retries, conditions, and the environment of jobs.
#[derive(Debug)]
pub struct Control {
    /// The time limit of a job.
    pub timeout: Option<Timeout>,
    /// The most times that a job is started.
    pub attempts: u32,
    /// The delay before the first retry.
    pub retry_delay: Duration,
    /// The policy that decides when no more jobs start.
    pub halt: Option<HaltPolicy>,
    /// The way in which jobs are terminated, if not by TERM, the grace period and KILL.
    pub kill: Option<Termination>,
    /// The least time between two starts.
    pub delay: Duration,
    /// The time between the first starts of two jobs.
    pub start_interval: Duration,
    /// The limit of jobs that run at once, for those whose text is the same.
    pub limit_per: Option<LimitPer>,
    /// The conditions that the host must meet before a job starts.
    pub conditions: Conditions,
    /// `true` if the jobserver of a surrounding make is respected.
    pub jobserver: bool,
    /// `true` if jobs inherit no descriptors besides their streams.
    pub close_fds: bool,
    /// The increment of the niceness of jobs.
    pub nice: i32,
    /// The most bytes of memory of a job, at least [`MEMORY_MAX_LEAST`]. Where it has no cgroup, of address
    /// space of each of its processes.
    pub memory_max: Option<u64>,
    /// The most seconds of processor time of each process of a job.
    pub cpu_max: Option<u64>,
    /// The timer slack of jobs, if they do not inherit it.
    pub timer_slack: Option<Duration>,
    /// The working directory of jobs, with placeholders.
    pub directory: Option<Template>,
    /// Environment variables for all jobs.
    pub env: Vec<(OsString, OsString)>,
    /// Environment variables whose text has placeholders.
    pub env_of_job: Vec<(OsString, Template)>,
    /// The environment variable that holds a job's slot, from 0.
    pub slot_var: Option<OsString>,
    /// The standard input of jobs, unless they read parts of the input.
    pub stdin: JobStdin,
    /// `true` if jobs use the terminal.
    pub tty: bool,
    /// `true` if each job is confirmed on the terminal.
    pub interactive: bool,
}

/// A limit of jobs that run at once, of those that have the same key.
#[derive(Clone, Debug)]
pub struct LimitPer {
    /// The text whose value is the key of a job. Without the slot, which is not known before the start.
    pub key: Template,
    /// The most jobs of one key that run at once.
    pub max: u32,
}

/// The time limit of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timeout {
    /// This long.
    After(Duration),
    /// This many times the median wall time of the jobs that succeeded.
    Median(f64),
}

/// Files in addition to standard output: results, files in place of output, copies of templates.
#[derive(Debug)]
pub struct OutputFiles {
    /// The target of `--results`.
    pub results: Option<Results>,
    /// `true` if output that goes into files of `results` is written to standard output as well.
    pub shown: bool,
    /// `true` if the names of files are written in place of output (`--files`).
    pub names: bool,
    /// The directory for files of `--files`.
    pub directory: PathBuf,
    /// `true` if those are named as GNU parallel names them.
    pub gnu_names: bool,
    /// Files that are copied for each job.
    pub copies: Vec<TemplateCopy>,
    /// `true` if files that were made for a job are removed when it has finished.
    pub cleanup: bool,
    /// A part of names that no other run uses.
    pub token: String,
}

/// The target of `--results`.
#[derive(Debug)]
pub enum Results {
    /// Into a tree of directories named by the arguments.
    Tree {
        /// Its root.
        root: PathBuf,
        /// The rule for the names of its directories.
        keys: ResultKeys,
    },
    /// Into files that a template names.
    Named(Template),
    /// Into one table for all jobs.
    Table {
        /// Its format.
        form: TableForm,
        /// The file; standard output if there is none.
        path: Option<PathBuf>,
        /// The names of the argument columns.
        names: Vec<OsString>,
    },
}

/// The rule for the names of the directories of a results tree.
#[derive(Debug)]
pub struct ResultKeys {
    /// The names of columns, as far as they have names.
    pub names: Vec<OsString>,
    /// The number of columns of one argument, if that is the same for all.
    pub width: Option<usize>,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// Rows with this byte between columns.
    Separated(u8),
    /// One array of objects.
    Json,
}

/// A file that is copied for each job, its placeholders filled in.
#[derive(Debug)]
pub struct TemplateCopy {
    /// The file's content, with placeholders.
    pub content: Template,
    /// The name of the copy, with placeholders.
    pub name: Template,
    /// The permissions of the file.
    pub permissions: Permissions,
    /// The file's absolute paths, with and without links resolved: no copy may replace it.
    pub originals: [PathBuf; 2],
}

impl RunConfig {
    /// Returns `true` if a running job may be killed and requeued.
    pub fn may_requeue(&self) -> bool {
        self.control.conditions.memfree.is_some() || self.control.conditions.limit.is_some()
    }

    /// Returns `true` if a program that one job cannot start cannot be started by any job. With
    /// `is_directory`, the same for a working directory that a job cannot enter.
    pub fn is_same_for_all(&self, is_directory: bool) -> bool {
        let directory_varies = self.control.directory.as_ref().is_some_and(Template::has_placeholders);
        if is_directory {
            return !directory_varies;
        }
        // `./a` in another directory is another program.
        let is_relative = |program: OsString| {
            let path = Path::new(&program);
            path.is_relative() && path.components().count() > 1
        };
        self.template.has_fixed_program()
            && !(directory_varies && self.template.program().is_some_and(is_relative))
    }

    /// Returns `true` if the output of a running job may be written at once.
    pub fn may_be_live(&self) -> bool {
        !self.spool && self.files.table().is_none()
    }

    /// Returns how a job is terminated.
    pub fn kill(&self) -> Termination {
        self.control.kill.unwrap_or(Termination::graceful(self.grace))
    }
}

impl OutputFiles {
    /// Returns the table, if there is one: its form, its file, the names of its columns.
    pub fn table(&self) -> Option<(TableForm, Option<&Path>, &[OsString])> {
        match &self.results {
            Some(Results::Table { form, path, names }) => Some((*form, path.as_deref(), names)),
            _ => None,
        }
    }

    /// Returns the name of the table's file for messages.
    pub fn table_name(&self) -> Option<String> {
        let (_, path, _) = self.table()?;
        path.map(|path| format!("the results in `{}`", path.display()))
    }

    /// Returns `true` if names of files or rows of a table are written in place of output. These
    /// are never colored.
    pub fn replaces_output(&self) -> bool {
        self.names || self.table().is_some()
    }

    /// Returns `true` if each job has files for its output.
    pub fn has_job_files(&self) -> bool {
        self.names || (self.results.is_some() && self.table().is_none())
    }
}

impl ResultKeys {
    /// Returns the columns of a job with the names of their directories, outermost first. Columns
    /// with names are sorted by them.
    pub fn of<'a>(&'a self, columns: &'a [OsString]) -> Vec<(OsString, &'a OsStr)> {
        let key = |place: usize| {
            let place = self.width.filter(|width| *width > 0).map_or(place, |width| place % width);
            self.names.get(place).cloned().unwrap_or_else(|| (place + 1).to_string().into())
        };
        let mut keys: Vec<_> =
            columns.iter().enumerate().map(|(place, column)| (key(place), column.as_os_str())).collect();
        if !self.names.is_empty() {
            keys.sort_by(|left, right| left.0.cmp(&right.0));
        }
        keys
    }
}

/// Returns the absolute path of `name`, with the links of its directory resolved, but not a link
/// that has this name.
///
/// # Errors
/// The directory cannot be read.
pub fn absolute_path(name: &Path) -> io::Result<PathBuf> {
    let dir = name.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new(".")).canonicalize()?;
    Ok(name.file_name().map_or_else(|| dir.clone(), |file| dir.join(file)))
}
