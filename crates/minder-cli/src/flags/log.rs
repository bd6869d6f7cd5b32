//! Flags of `minder log`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;

// See `crate::commands::log`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder log [FLAGS] [RUN [JOB]]",
    after_help = "Try: minder log, minder log last, minder log last 17, minder log --failed",
    after_long_help = EXAMPLES
)]
pub(crate) struct LogFlags {
    /// The run: its id, the first digits of the id, or `last`. Without it, all runs are listed, newest
    /// first.
    pub(crate) run: Option<String>,

    /// The number of a job of that run. Shows all that is recorded of it: its command, directory,
    /// times, result, and the end of its output if it failed.
    #[arg(conflicts_with_all = ["number", "failed", "slow", "matching", "follow", "sql", "sqlite"])]
    pub(crate) job: Option<u64>,

    /// Print what the job wrote to its standard output, as it is. All of it is in the record with
    /// `minder run --keep-output`, else the last 2 KiB of a failed job.
    #[arg(long, requires = "job", conflicts_with_all = ["stderr", "json", "csv", "junit"])]
    pub(crate) stdout: bool,

    /// Print what the job wrote to its standard error.
    #[arg(long, requires = "job", conflicts_with_all = ["json", "csv", "junit"])]
    pub(crate) stderr: bool,

    /// With --stdout and --stderr: the output of the Nth start of the job, instead of the last one. Those by
    /// `--retries`, `minder retry` and `minder resume` count.
    #[arg(long, value_name = "N", requires = "job")]
    pub(crate) attempt: Option<u32>,

    /// List at most N runs [default: 20 in a table, all as data]
    #[arg(short = 'n', long = "number", value_name = "N", conflicts_with_all = ["failed", "follow"])]
    pub(crate) number: Option<usize>,

    /// Show only failed jobs, with the last lines of their output. Without RUN: of the last run. The
    /// record has up to 2 KiB of stdout and of stderr of each failed job.
    #[arg(long)]
    pub(crate) failed: bool,

    /// Show only the N slowest jobs, the longest first. Without RUN: of the last run.
    #[arg(long, value_name = "N", conflicts_with_all = ["number", "follow"])]
    pub(crate) slow: Option<NonZero<usize>>,

    /// Show only jobs whose command contains TEXT, as it is typed. Without RUN: of the last run.
    #[arg(long = "match", value_name = "TEXT", conflicts_with = "number")]
    pub(crate) matching: Option<String>,

    /// Show jobs as they finish, until the run has finished. Without RUN: of the last run.
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Print JSON, one object per line.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print CSV (RFC 4180) with a header line.
    #[arg(long)]
    pub(crate) csv: bool,

    /// Print the jobs as a JUnit report (XML). Without RUN: of the last run.
    #[arg(long, conflicts_with_all = ["job", "number", "follow", "json", "csv", "sql", "sqlite"])]
    pub(crate) junit: bool,

    /// Query the tables `runs`, `attempts` and `jobs` of RUN, or of all runs.
    ///
    /// The tables are created in memory for this query, which can read nothing else.
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["failed", "slow", "matching", "follow"])]
    pub(crate) sql: Option<String>,

    /// Write the same tables to a new SQLite database.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["failed", "slow", "matching", "follow", "json", "csv", "sql"]
    )]
    pub(crate) sqlite: Option<PathBuf>,

    /// Remove runs beyond the limits of age, number and size, and list them with the reason.
    #[arg(
        long,
        conflicts_with_all =
            ["run", "job", "number", "failed", "slow", "matching", "follow", "json", "csv", "junit", "sql",
             "sqlite"]
    )]
    pub(crate) prune: bool,

    /// With --prune: only list what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  minder log                                  runs, newest first
  minder log last                             the jobs of the last run
  minder log last 17                          everything about one job
  minder log last 17 --stdout                 its output, if it is kept
  minder log last 17 --stderr --attempt 1     that of its first try
  minder log 61c0 --failed                    failed jobs, and their last lines
  minder log 61c0 --slow 5                    the five slowest jobs
  minder log last --failed --match x86        failed jobs with this text
  minder log --follow                         jobs of the last run as they end
  minder log 61c0 --csv > jobs.csv            for a spreadsheet
  minder log last --junit > report.xml        for continuous integration
  minder log last --json | jq -r 'select(.exit != 0).args[0]'
  minder log last 17 --json | jq -r .command  the command of a job, to be pasted
  minder log --sqlite runs.db                 all runs, as a database
  minder log last --sql 'select args, wall from jobs order by wall desc limit 5'
  minder log --sql 'select run, count(*), sum(wall) from jobs group by run'
  minder log --prune --dry-run                runs that would be removed

Columns:
  runs      run at command jobs failed elapsed state note
  attempts  run attempt version pid at succeeded failed elapsed cpu why
            timed_out retried cut not_run slots cpus memory cpu_busy cpu_idle
            own_rss
  jobs      run job args at wall user system ready main rss exit signal error
            out err leaked tail out_tail timed_out attempts cause node agent
  tries     run job try at wall user system exit signal out err tail out_tail
            timed_out cause

With JOB, --json and --csv also have command, cwd, environment and output (the
files with output that was not shown yet).

`at` is in seconds since 1970; wall, user, system, elapsed and cpu are in
seconds; rss, out and err are in bytes. A job has an exit code, or the signal
that ended it, or the error that kept it from starting. `tail` is the end of a
failed job's stderr, `out_tail` that of its stdout. `timed_out` is set for a job
that exceeded --timeout, `attempts` is how often it was started, `cause` shows
whether memory ran short. Each invocation of minder for a run is an attempt;
`cut` counts the jobs that it killed, which run again. The table of tries is for
queries: it has the starts of a job that failed and were followed by another one
(--retries).

`ready` is how long the main thread of a job waited for a processor, `main` how
long it ran, if others did more than a tenth of the work (Linux). `cpu_busy` and
`cpu_idle` are those of all processors of the machine; `own_rss` is the memory
of minder, above which an rss is that of the job.

Tables show control characters as \\n, \\x1b …; data is exact. In JSON, args and
command are lists, and bytes that are not UTF-8 are {\"base64\": \"…\"}. In CSV and
SQL, args_form, command_form, tail_form and out_tail_form name the format of the
value: text; base64 (SQL: bytes, a blob) if it is not UTF-8; json if it is a
list of several values. In the CSV of a query, blobs are base64.

Once a day, a recorded run removes old runs, as --prune does immediately: those
without a write for 30 days, then the oldest beyond 1,000 runs or 1 GiB. minder
keeps a run that is still running, and for 30 days a run with output that was
not shown.

The list of runs shows the beginning of each command and its first arguments. A
damaged record is shown as far as it can be read; a message on stderr names it.
To finish a run that was killed: minder resume RUN.

Exit status:
  0        everything was shown, of a damaged record all that can be read
  141      stdout was closed by its reader, as with | head
  255      any other error; one line on stderr describes it";
