//! Flags of `minder run` that delay, end and retry jobs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use minder_runner::config::MEMORY_MAX_LEAST;
use minder_ui::units::{count, fine_time, rate, time};

// See `crate::commands::run`.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Failures and time limits")]
pub(crate) struct ControlFlags {
    /// Kill a job that runs longer; N%: of the median.
    ///
    /// Seconds, or a value with units such as 90s, 1h30m or 2d; 0 disables it. N% is relative to the
    /// median duration of the last 1,000 jobs that succeeded, once there are three, and at least 500 ms
    /// longer than it.
    #[arg(long, value_name = "TIME|N%")]
    pub(crate) timeout: Option<String>,

    /// Start a failing job up to N times; 0: no limit.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) retries: Option<u64>,

    /// Delay before a failed job is retried.
    ///
    /// Doubles after each attempt, with ±50 % jitter, up to one minute. Default: no delay; with
    /// `--retries 0`, 1s.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) retry_delay: Option<Duration>,

    /// Stop early, as in now,fail=1.
    ///
    /// now|soon,fail|success|done=N|N%. `now` kills the running jobs, `soon` waits for them. N% is that of
    /// all jobs, so all of the input is read first; with --pipe, it is that of the finished ones.
    #[arg(long, visible_alias = "halt-on-error", value_name = "WHEN,WHY", allow_hyphen_values = true)]
    pub(crate) halt: Option<String>,

    /// Signals that end a job, with delays in ms.
    ///
    /// Default: TERM, then KILL after --grace.
    #[arg(long, visible_alias = "term-seq", value_name = "SIGNAL,MS,…")]
    pub(crate) termseq: Option<String>,

    /// Minimum time between two job starts.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Load and memory")]
    pub(crate) delay: Option<Duration>,

    /// Start at most N jobs in a time: 10/s, 100/m.
    ///
    /// N/s, N/m and N/h; or N and a longer time, such as 1/10s. The starts are spread evenly. Retries do not
    /// count, and wait for no turn.
    #[arg(long, value_name = "N/TIME", value_parser = rate, help_heading = "Load and memory")]
    pub(crate) rate: Option<Duration>,

    /// Run at most N jobs at once for which TEXT has the same value.
    ///
    /// `--limit-per {1} 2` runs two jobs for each host of a list, whatever -j is. TEXT has placeholders.
    /// Jobs for other values go first meanwhile; up to 10,000 jobs wait for theirs.
    #[arg(long, num_args = 2, value_names = ["TEXT", "N"], help_heading = "Load and memory")]
    pub(crate) limit_per: Vec<OsString>,

    /// Start no job while the load is N or more; N%: of processors.
    ///
    /// The load is the number of processes and threads of this machine that run or wait for a processor, at
    /// this moment (Linux); elsewhere the load average of the last minute. Those of the jobs count, too. When
    /// other programs have kept all jobs from running for 10 seconds, one job starts.
    #[arg(long, value_name = "N|N%", help_heading = "Load and memory")]
    pub(crate) load: Option<String>,

    /// Let a job use at most this much memory (Linux).
    ///
    /// Where minder may make cgroups, as with `systemd-run --user --scope -p Delegate=yes minder run …`, the
    /// memory of all processes of a job is added up, and the kernel kills the job beyond SIZE, which is at
    /// least 1 MiB. Elsewhere a message says so, and SIZE limits the address space of each process:
    /// RLIMIT_AS, as `ulimit -v` sets it. A program that asks for more gets an error, and usually fails.
    /// Programs that reserve much more than they use, such as Java and Go, need a higher value then.
    #[arg(long, value_name = "SIZE", value_parser = memory_max, help_heading = "Load and memory")]
    pub(crate) memory_max: Option<u64>,

    /// Let each process of a job use at most this much processor time (Linux).
    ///
    /// Whole seconds, rounded up: RLIMIT_CPU, as `ulimit -t` sets it. The process gets SIGXCPU, and SIGKILL a
    /// second later. The processes of a job are not added up. --timeout limits the elapsed time of a job.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Load and memory")]
    pub(crate) cpu_max: Option<Duration>,

    /// Start no job with less free memory.
    ///
    /// With less than half of it, the youngest job is killed and queued again.
    #[arg(long, value_name = "SIZE", value_parser = count, help_heading = "Load and memory")]
    pub(crate) memfree: Option<u64>,

    /// Suspend jobs with less than twice this memory free.
    ///
    /// With less than this memory free, suspend all jobs but one.
    #[arg(long, value_name = "SIZE", value_parser = count, help_heading = "Load and memory")]
    pub(crate) memsuspend: Option<u64>,

    /// Start no job while the machine swaps in and out.
    ///
    /// When it has kept all jobs from running for 10 seconds, one job starts.
    #[arg(long, help_heading = "Load and memory")]
    pub(crate) noswap: bool,

    /// Run this command before each start; or: io N, load N, mem N.
    ///
    /// Its exit status decides: 0 starts the job, 1 waits, 2 kills the youngest job and queues it
    /// again. An answer counts for a quarter of a second. io and load wait as --load does, at most 10
    /// seconds while no job runs.
    #[arg(long, value_name = "COMMAND", help_heading = "Load and memory")]
    pub(crate) limit: Option<String>,

    /// Ignore make's jobserver.
    #[arg(long, help_heading = "Load and memory")]
    pub(crate) no_jobserver: bool,

    /// Pass jobs no descriptors besides stdin, stdout and stderr.
    ///
    /// By default, jobs inherit the descriptors that your shell opened above stderr, under the same
    /// numbers: `3>file`, `exec 9>lock`, `<(command)`.
    #[arg(long, help_heading = "Environment of the jobs")]
    pub(crate) close_fds: bool,

    /// Increase the niceness of the jobs by N.
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        default_value_t = 0,
        help_heading = "Load and memory"
    )]
    pub(crate) nice: i32,

    /// Let the kernel delay timers of the jobs by TIME (Linux).
    ///
    /// 5ms saves power; 1us makes sleeps and time-outs of the jobs more exact. The units ns, us and ms
    /// are known, too. Default: the timer slack that minder was started with, 50us unless you changed
    /// it.
    #[arg(long, value_name = "TIME", value_parser = fine_time, help_heading = "Load and memory")]
    pub(crate) timer_slack: Option<Duration>,

    /// Run jobs in this directory; `...`: a new one each.
    ///
    /// It is created if necessary, and may contain placeholders, whose value is not also appended to
    /// the command: `--wd {} make` runs `make` in each directory. A new directory is private. It is
    /// created in the directory of the run's record or, without a record, in --tmpdir or the
    /// directory for temporary files. It is kept unless --cleanup removes it after the job. Needed where
    /// the working directory of minder was deleted.
    #[arg(long, visible_alias = "workdir", value_name = "DIR", help_heading = "Environment of the jobs")]
    pub(crate) wd: Option<OsString>,

    /// Those of `env` and `wd` that settings set: they may not take the argument from the command.
    #[arg(skip)]
    pub(crate) set_by_settings: Vec<&'static str>,

    /// Set a variable for the jobs: NAME=VALUE.
    ///
    /// VALUE may contain placeholders, whose value is not also appended to the command:
    /// `--env STAGE={} ./deploy` runs `./deploy`. The program of a job is searched for in a PATH that is
    /// set here. `NAME` without a value is accepted and has no effect: jobs inherit the whole environment.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Environment of the jobs")]
    pub(crate) env: Vec<OsString>,

    /// Set variables for the jobs from lines NAME=VALUE of a file.
    ///
    /// Empty lines and comments are skipped, `export` before a name is accepted, and a value may be in single
    /// or double quotes. Nothing is expanded: `$` is a character as any other. --env overrides them, and so
    /// does a later file. The file is read again by `minder resume`; the record has its name only.
    #[arg(long, value_name = "FILE", help_heading = "Environment of the jobs")]
    pub(crate) env_file: Vec<PathBuf>,

    /// Pass the number of the job's slot in this variable.
    #[arg(long, value_name = "NAME", help_heading = "Environment of the jobs")]
    pub(crate) process_slot_var: Option<OsString>,

    /// Standard input of the jobs: null, inherit or a file.
    ///
    /// `null`, the default, is an empty input. `inherit` is that of minder: all jobs read from it, and
    /// arguments come from `:::` or -a. A job reads FILE from its beginning; `./null` is a file of
    /// that name. A named pipe is refused.
    #[arg(long, value_name = "null|inherit|FILE", help_heading = "Environment of the jobs")]
    pub(crate) stdin: Option<OsString>,

    /// Give jobs the terminal, one at a time unless -j is given.
    ///
    /// This does not change where their output goes. Ctrl-C goes to a job that has run for a tenth of a
    /// second; it ends the run if the job dies of it, as in a shell.
    #[arg(long, visible_alias = "open-tty", short = 'o', conflicts_with_all = ["pty", "spool"])]
    #[arg(help_heading = "Environment of the jobs")]
    pub(crate) tty: bool,

    /// The exit status: of parallel (default), or of xargs.
    ///
    /// With xargs: 0 if all jobs succeeded; 123 if some failed; 124 if one exited with 255; 125 if a
    /// signal ended one; 126 if the command cannot be run; 127 if it does not exist; 1 if another error
    /// ended the run. The highest one counts. `--halt` decides whether a failure ends the run.
    #[arg(
        long,
        value_name = "RULE",
        default_value = "parallel",
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Failures and time limits"
    )]
    pub(crate) exit_status: ExitStatusFlag,

    /// Ask on the terminal before each job.
    #[arg(short = 'p', long, help_heading = "Running jobs")]
    pub(crate) interactive: bool,
}

/// The rule for the exit status of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExitStatusFlag {
    /// The number of failed jobs, up to 100.
    #[default]
    Parallel,
    /// A status for each kind of failure.
    Xargs,
}

/// Parses a limit of memory.
fn memory_max(text: &str) -> Result<u64, String> {
    match count(text)? {
        bytes if bytes < MEMORY_MAX_LEAST => Err(format!("`{text}` is too small: the minimum is 1M")),
        bytes => Ok(bytes),
    }
}
