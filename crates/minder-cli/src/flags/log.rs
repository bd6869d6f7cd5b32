//! Flags of `minder log`.

use std::path::PathBuf;

use clap::Args;

/// See [`crate::verbs::log`].
#[derive(Debug, Args)]
#[command(
    override_usage = "minder log [FLAGS] [RUN]",
    after_help = "Try: minder log, minder log last, minder log --failed",
    after_long_help = EXAMPLES
)]
pub(crate) struct LogFlags {
    /// The run: its id, the first digits of it, or `last`. Without it, all runs are listed, newest
    /// first.
    pub(crate) run: Option<String>,

    /// List at most N runs [default: 20 in a table; else all]
    #[arg(short = 'n', long = "number", value_name = "N", conflicts_with_all = ["run", "failed", "follow"])]
    pub(crate) number: Option<usize>,

    /// Only jobs that failed, each with the last lines of its stderr. Without RUN: of the last run.
    #[arg(long)]
    pub(crate) failed: bool,

    /// Show jobs as they end, until the run is over. Without RUN: of the last run.
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Print JSON, one object a line.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print CSV (RFC 4180), the names of the columns first.
    #[arg(long)]
    pub(crate) csv: bool,

    /// Answer a query from the tables `runs`, `attempts` and `jobs`: of RUN, or of all runs.
    ///
    /// They are made in memory for this one query, which can read them and nothing else.
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["failed", "follow"])]
    pub(crate) sql: Option<String>,

    /// Write the same tables into a new SQLite database.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failed", "follow", "json", "csv", "sql"])]
    pub(crate) sqlite: Option<PathBuf>,

    /// Remove runs that are too old or too many, and say which and why.
    #[arg(
        long,
        conflicts_with_all = ["run", "number", "failed", "follow", "json", "csv", "sql", "sqlite"]
    )]
    pub(crate) prune: bool,

    /// With --prune: only say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  minder log                                  runs, newest first
  minder log last                             the jobs of the last run
  minder log 61c0 --failed                    what failed, with the last lines of its output
  minder log --follow                         jobs of the last run as they end
  minder log 61c0 --csv > jobs.csv            for a spreadsheet
  minder log last --json | jq -r 'select(.exit != 0).args[0]'
  minder log --sqlite runs.db                 all runs, as a database
  minder log last --sql 'select args, wall from jobs order by wall desc limit 5'
  minder log --sql 'select run, count(*), sum(user + system) from jobs group by run'
  minder log --prune --dry-run                what would be removed, and why

Columns:
  runs      run at command jobs failed elapsed state note
  attempts  run attempt version pid at succeeded failed elapsed cpu why timed_out
            retried cut not_run
  jobs      run job args at wall user system rss exit signal error out err leaked tail
            out_tail timed_out attempts cause

`at` is in seconds since 1970; wall, user, system, elapsed and cpu are in seconds;
rss, out and err are in bytes. A job has an exit code, or the signal that ended it,
or the error that kept it from starting. `tail` is the end of what a failed job
wrote to its stderr, `out_tail` that of its stdout. `timed_out` says that it took too
long, `attempts` how often it was started, `cause` whether memory ran short. Each start
of minder on a run is an attempt; `cut` are jobs that it ended, which run again.

Tables show control characters as \\n, \\x1b …; data is exact. In JSON, args and
command are lists, and what is no UTF-8 is {\"base64\": \"…\"}. In CSV and SQL,
args_form, command_form, tail_form and out_tail_form say how the value is written: text; base64
(SQL: bytes, a blob) where it is no UTF-8; json where it is a list of several. In the
CSV of a query, blobs are base64.

Once a day a run that leaves a record removes old ones, as --prune does at once: those
to which nothing was written for 30 days, then the oldest beyond 1,000 runs or 1 GiB. A
run that is running stays; one with output that was not shown stays for the 30 days.

A record that is damaged is shown as far as it can be read; one line on stderr names
it. A run that was killed can be taken up: minder run --resume RUN.

Exit status:
  0        all was shown, of a damaged record what there is
  141      whoever read the output closed it
  255      anything else; one line on stderr says what";
