//! Flags of `minder status`.

use clap::Args;

// See `crate::commands::status`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder status [FLAGS] [RUN]",
    after_help = "Try: minder status, minder status last",
    after_long_help = DETAILS
)]
pub(crate) struct StatusFlags {
    /// The run: its id, the first digits of the id, or `last`. Without it, all runs that run now.
    pub(crate) run: Option<String>,

    /// Print JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

const DETAILS: &str = "\
Examples:
  minder status                     all runs that run now, with their jobs
  minder status 61c0                one of them
  watch minder status               again every two seconds
  minder status --json | jq -r '.jobs[].pid'

The finished jobs are those in the record, which may be a moment behind. Running
jobs are the children of the process that works on the run (Linux). Their
commands are those of their processes, and their numbers those in their
environments (MINDER_JOB). A job without a number there, or with that of another
job, is shown with `?`, and a message on stderr counts such jobs. On other
systems, for the process of another user, and without /proc, only the finished
jobs are shown, and a message on stderr says why.

Keys of --json: run; pid; at (the start, in seconds since 1970); elapsed, in
seconds; command; total, or null if it is not known how many jobs there are;
done; failed; running, the number of running jobs, or null if they cannot be
seen; left, or null if total or running is; jobs, with job, slot, pid, elapsed
and command of each, of which job, slot and elapsed may be null. Bytes that are
not UTF-8 are {\"base64\": \"…\"}.

Exit status:
  0        also if no run is running
  141      stdout was closed by its reader
  255      any other error; one line on stderr describes it";
