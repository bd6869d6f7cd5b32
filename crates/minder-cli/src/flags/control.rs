//! Flags of `minder run` about what holds jobs back, ends them, and runs them again.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::units::{count, time};

/// See [`crate::verbs::run`].
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Control")]
pub(crate) struct ControlFlags {
    /// End a job that takes longer: a time, or N% of the median.
    ///
    /// Seconds, or with s, m, h, d; 0 is none. N% goes by the median of the jobs so far.
    #[arg(long, value_name = "TIME|N%")]
    pub(crate) timeout: Option<String>,

    /// Start a failing job up to N times; 0: without limit.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) retries: Option<u64>,

    /// Wait so long before a job is started again.
    ///
    /// Twice as long each further time, give or take a half, and no longer than a minute. Default:
    /// no delay; with `--retries 0` 1s.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) retry_delay: Option<Duration>,

    /// When to end early, as in now,fail=1.
    ///
    /// now|soon,fail|success|done=N|N%. `now` ends what runs, `soon` waits for it.
    #[arg(long, visible_alias = "halt-on-error", value_name = "WHEN,WHY", allow_hyphen_values = true)]
    pub(crate) halt: Option<String>,

    /// Signals that end a job, ms between them.
    ///
    /// TERM, then KILL after --grace, unless you say otherwise.
    #[arg(long, visible_alias = "term-seq", value_name = "SIGNAL,MS,…")]
    pub(crate) termseq: Option<String>,

    /// Wait so long between two starts.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) delay: Option<Duration>,

    /// Start nothing while so many processes run; N%: of processors.
    #[arg(long, value_name = "N|N%")]
    pub(crate) load: Option<String>,

    /// Start nothing with less memory free.
    ///
    /// With less than half of it, the youngest job is put back.
    #[arg(long, value_name = "SIZE", value_parser = count)]
    pub(crate) memfree: Option<u64>,

    /// Suspend jobs with less than twice this memory free.
    ///
    /// With less than once, all but one.
    #[arg(long, value_name = "SIZE", value_parser = count)]
    pub(crate) memsuspend: Option<u64>,

    /// Start nothing while the machine swaps in and out.
    #[arg(long)]
    pub(crate) noswap: bool,

    /// Ask this command before each start; or: io N, load N, mem N.
    ///
    /// Its status says what to do: 0 starts, 1 waits, 2 puts the youngest job back.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) limit: Option<String>,

    /// Run beside make's jobserver instead of taking part in it.
    #[arg(long)]
    pub(crate) no_jobserver: bool,

    /// Leave jobs no open file but their input and outputs.
    ///
    /// Without it they get what your shell left open above standard error, under the same numbers:
    /// `3>file`, `exec 9>lock`, `<(command)`.
    #[arg(long)]
    pub(crate) close_fds: bool,

    /// Run jobs with this much more niceness.
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 0)]
    pub(crate) nice: i32,

    /// Run jobs in this folder; `...`: a new one each.
    ///
    /// It is made if need be, and may have placeholders. A new one is private, in the folder of the
    /// run's record (without a record: in that of --tmpdir, or for temporary files), and stays
    /// there; with --cleanup it is removed when the job is over.
    #[arg(long, visible_alias = "workdir", value_name = "DIR")]
    pub(crate) wd: Option<OsString>,

    /// Set a variable for the jobs: NAME=VALUE.
    ///
    /// A name alone is handed on, as all are.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,

    /// Give each job the slot's number in this variable.
    #[arg(long, value_name = "NAME")]
    pub(crate) process_slot_var: Option<OsString>,

    /// Give jobs the terminal, one at a time.
    ///
    /// Their outputs stay as they are.
    #[arg(long, visible_alias = "open-tty", short = 'o', conflicts_with_all = ["pty", "spool"])]
    pub(crate) tty: bool,

    /// Ask on the terminal before each job.
    #[arg(short = 'p', long)]
    pub(crate) interactive: bool,
}
