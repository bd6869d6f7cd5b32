//! Flags of `minder run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use super::control::ControlFlags;
use super::display::DisplayFlags;
use super::input::{ArityFlags, InputFlags, PlaceholderFlags};
use super::output::{OutputFlags, RecordFlags};
use super::pipe::PipeFlags;
use super::short_help;

const USAGE: &str = "\
minder run [FLAGS] COMMAND… ::: ARGUMENT…
       … | minder run [FLAGS] COMMAND…
       minder run [FLAGS] ::: COMMAND…";

// See `crate::commands::run`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = USAGE,
    help_template = short_help::RUN_TEMPLATE,
    before_help = short_help::RUN_EXAMPLES,
    after_help = short_help::RUN_POINTERS,
    after_long_help = after_help(),
    args_override_self = true,
    disable_help_flag = true
)]
pub(crate) struct RunFlags {
    /// The command, then `:::` and arguments, or arguments on stdin.
    ///
    /// Without `:::`, each line of stdin is an argument. Without a command, each argument after `:::` is
    /// a shell line; see --commands.
    ///
    /// A command of several words is run directly, without a shell. One string with spaces or shell
    /// characters is a shell line. `{}` stands for the argument; without it, the argument comes last.
    /// With --resume, --resume-failed or --retry-failed, and without --joblog, a run id takes the
    /// place of the command.
    #[arg(trailing_var_arg = true, value_name = "COMMAND", help_heading = "Command and arguments")]
    pub(crate) words: Vec<OsString>,

    /// Run N jobs at once. Default: one per processor.
    ///
    /// N; N% of the processors; +N or -N, more or fewer than there are processors; 0 for no limit; or a
    /// file with such a value, which is read again during the run.
    #[arg(
        short = 'j',
        long,
        visible_short_alias = 'P',
        visible_alias = "max-procs",
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Running jobs"
    )]
    pub(crate) jobs: Option<OsString>,

    #[command(flatten)]
    pub(crate) input: InputFlags,

    #[command(flatten)]
    pub(crate) arity: ArityFlags,

    #[command(flatten)]
    pub(crate) placeholders: PlaceholderFlags,

    #[command(flatten)]
    pub(crate) output: OutputFlags,

    #[command(flatten)]
    pub(crate) display: DisplayFlags,

    #[command(flatten)]
    pub(crate) control: ControlFlags,

    #[command(flatten)]
    pub(crate) pipe: PipeFlags,

    #[command(flatten)]
    pub(crate) record: RecordFlags,

    /// The shell for a command that is one string.
    ///
    /// One string with spaces or shell characters is a shell line. The shell is a POSIX shell (sh,
    /// dash, bash, ksh, zsh, busybox …), started as `SHELL -c LINE`; or pwsh or powershell; on
    /// Windows also cmd, the default there.
    #[arg(long, value_name = "PATH", help_heading = "Environment of the jobs")]
    pub(crate) shell: Option<OsString>,

    /// Fail a shell line if any command of a pipeline fails, not only the last.
    ///
    /// With it, a failing `dump` in `dump {} | gzip` fails the job. The shell gets the option `-o pipefail`.
    /// Without --shell, bash runs the lines.
    #[arg(long, help_heading = "Environment of the jobs")]
    pub(crate) pipefail: bool,

    /// Set PARALLEL_SEQ, PARALLEL_JOBSLOT and PARALLEL_PID for the jobs, as GNU parallel does. In the
    /// record, the flag marks a run with GNU parallel's command line.
    #[arg(long, hide = true)]
    pub(crate) parallel_env: bool,

    /// Run the jobs on agents: `local:N` starts N processes of minder on this machine, each with -j jobs at
    /// once. They share the jobs by the record of the run.
    #[arg(long, value_name = "PLACE", hide = true)]
    pub(crate) on: Option<String>,

    /// With --on, an agent is lost if it shows no sign of life for SECONDS. Others run its jobs then.
    #[arg(long, value_name = "SECONDS", hide = true, requires = "on", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lost_after: u64,

    /// With --on, end when the agents work and have all of the input. Print the id of the run.
    ///
    /// The agents continue without this process. `minder attach` shows the output, waits for the end, and has
    /// the exit status of the run. `minder status` shows how far it is, and `minder cancel` ends it.
    #[arg(long, hide = true, requires = "on")]
    pub(crate) detach: bool,

    /// With --on, what Ctrl-C does: it ends the run, or this process alone.
    ///
    /// `detach` lets the agents continue: see --detach. Default: `ask` on a terminal, else `cancel`. A second
    /// Ctrl-C ends the run.
    #[arg(long, value_name = "HOW", hide = true, requires = "on")]
    pub(crate) on_interrupt: Option<OnInterrupt>,

    /// What to do if output stays open after a job.
    ///
    /// Output stays open after a job has exited if a process that it started still holds it.
    #[arg(long, value_name = "HOW", default_value = "close", help_heading = "Other")]
    pub(crate) leak: Leak,

    /// Seconds between Ctrl-C and the killing of the jobs.
    ///
    /// Ctrl-C sends TERM first.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, help_heading = "Other")]
    pub(crate) grace: u64,

    /// Hold each result back for this time, and drop it if the run is ended meanwhile.
    ///
    /// For programs that end a run by a signal to each of its processes, such as `scancel` and `systemctl
    /// stop`. A job whose inner command was killed may exit with 0; it runs again with `minder resume`.
    /// Default: 300 ms if SLURM_JOB_ID, PBS_JOBID or LSB_JOBID is set, or INVOCATION_ID without a terminal;
    /// otherwise 0.
    #[arg(long, value_name = "TIME", value_parser = minder_ui::units::time, help_heading = "Other")]
    pub(crate) hold_results: Option<Duration>,

    /// The wait mechanism; `minder doctor` lists them.
    #[arg(long, value_name = "NAME", env = "MINDER_BACKEND", help_heading = "Other")]
    pub(crate) backend: Option<String>,

    /// Run without guardians: `kill -9` of minder leaves its jobs running.
    ///
    /// No effect on Windows, which always ends the jobs with minder.
    #[arg(long, help_heading = "Other")]
    pub(crate) no_guard: bool,

    /// Use this profile of the files minder.toml.
    ///
    /// The keys of [profile.NAME] override those of [run] in the same file. See `minder help config`.
    #[arg(long, value_name = "NAME", help_heading = "Other")]
    pub(crate) profile: Option<String>,

    /// Ignore the files minder.toml and the variables MINDER_RUN_….
    ///
    /// `minder config` lists the settings that they make.
    #[arg(long, conflicts_with = "profile", help_heading = "Other")]
    pub(crate) no_config: bool,

    /// Print help: the daily flags with -h, all flags with --help.
    #[arg(id = "help", short = 'h', long = "help", action = ArgAction::Help, help_heading = "Other")]
    _help: Option<bool>,
}

/// The treatment of output that stays open after its job has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Leak {
    /// Close it after 100 ms without output, and print a message.
    Close,
    /// Read it until it is closed.
    Wait,
}

/// What Ctrl-C does to a run whose jobs run on agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnInterrupt {
    /// Ask on the terminal.
    Ask,
    /// End the agents, and the run.
    Cancel,
    /// End this process. The agents continue.
    Detach,
}

const AFTER: &str = "\
A value never becomes shell code. In a shell line, values are passed to the
shell as positional parameters, and to cmd and PowerShell as variables. A line
in which a value would be evaluated (in backticks, here-documents, code for
another shell …) is refused, with the reason. The exception is a run without a
command, in which each argument is a shell line: `minder run ::: LINE…`, and
--commands.

Output is shown job by job when each job has finished. stdout and stderr stay
separate and unchanged. A job that runs alone is shown live. -k, --lb and -u
change this. Output that does not fit into memory is stored in private files.
Jobs have an empty standard input (see --stdin), their own process group, and
the variables MINDER_JOB and MINDER_SLOT, which count from 1.

Each run leaves a private record in $MINDER_STATE_DIR, else in
$XDG_STATE_HOME/minder, else in ~/.local/state/minder: the argument, times and
exit status of each job, its output until it is shown, and the last 2 KiB of
stderr if it failed. `minder log` reads it. After an interrupted run, `minder
resume` runs the unfinished jobs and shows the output that was not shown. Jobs
that were running are run again, and their output is shown again. Once a day,
minder removes runs older than 30 days, and the oldest runs beyond 1,000 or 1
GiB.

Ctrl-C starts no further jobs and sends TERM to the running ones; a second
Ctrl-C kills them. When minder itself is killed, even by `kill -9`, all
processes that it started are killed within a second. The exceptions: processes
of another user (sudo), work passed to a server that was already running
(docker, systemd-run, at, the remote side of ssh), and what is left if both
guardians of minder are killed at the same moment.

On Windows the record is in $MINDER_STATE_DIR, else in %LOCALAPPDATA%\\minder.
There, jobs cannot be asked to exit: Ctrl-C, Ctrl-Break and closing the window
kill them at once, and minder exits with status 0xC000013A.";

/// Returns the end of the long help: guarantees and their limits, exit statuses.
fn after_help() -> String {
    format!("{AFTER}\n\n{}", minder_ui::exit::HELP)
}
