//! Flags of `minder advise`.

use clap::Args;

/// See [`crate::commands::advise`].
#[derive(Debug, Args)]
#[command(
    override_usage = "minder advise [FLAGS] [RUN]",
    after_help = "Try: minder advise, minder advise last",
    after_long_help = DETAILS
)]
pub(crate) struct AdviseFlags {
    /// The run: its id, the first digits of the id, or `last`. Without it, the last run of this
    /// directory; if it has none, the last run.
    pub(crate) run: Option<String>,

    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

const DETAILS: &str = "\
Examples:
  minder advise                     the last run of this directory
  minder advise 61c0 --json | jq -r .flags

The table compares running the jobs one by one, the run as it was, and the run as
advised. `turnaround` is the time from the start of the run to the end of a job,
divided by the time that the job takes alone; 95 % of the jobs have at most `p95`.
The elapsed time of the run as it was is the measured one; all other numbers are
predicted.

How it is computed: a job computes for its CPU time. It waits for the rest of its
wall time, without the time in which it was ready to run and other processes had the
processors (Linux records that for the main thread of each job). As many jobs are
advised as keep the processors busy: processors / CPU part, and half as many more as
long as that ends 5 % sooner; but no more than there are jobs, or than fit into
memory. If the processors had less than 10 % of their time left, and the jobs compute
for more than 5 % of theirs, no more are advised than ran.
Shortest-first has the best mean turnaround. Longest-first is advised if it ends 10 %
sooner. The prediction simulates the jobs on the processors that other programs left
in the run, which all threads share equally.

The range of the error has these parts: 3 %; 10 % of a job, less with many jobs; the
difference between the model and the measured run; what is not recorded; other
programs; more waiting jobs than in the run. Jobs that wait for the same disk or
server slow each other down, which is not predicted.

Memory counts only where it is known: the resident set of a job is its own if it is
larger than that of minder. It is that of the largest process of a job.

Jobs that did not start, that a signal or --timeout ended, or that were killed because
memory was short are left out. A job that was retried counts with its last attempt.

Keys of --json: run, jobs, cpu_part, own (the times of the shortest, the median and the
longest job), processors, busy, slots, measured; one_by_one, as_run, advised and
other_order, each with slots, order, elapsed, mean, p95; limit (jobs, processors, busy,
memory), memory, error, doubts, attempts, retried, not_started, ended_early, left_out,
killed; flags. Times are in seconds, parts and error from 0 to 1.

Exit status:
  0        there is an advice
  141      stdout was closed by its reader
  255      no advice, or any other error; one line on stderr describes it";
