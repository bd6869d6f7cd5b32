//! Flags of `minder advise`.

use clap::Args;

// See `crate::commands::advise`.
#[derive(Debug, Args)]
#[group(skip)]
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

The table compares running the jobs one by one, the run as it was, and the run
as advised. `turnaround` is the time from the start of the run to the end of a
job, divided by the time that the job takes alone; 95 % of the jobs have at most
`p95`. The elapsed time of the run as it was is the measured one, if all of its
jobs ran; all other numbers are predicted.

How it is computed: a job computes for its CPU time. It waits for the rest of
its wall time, without the time in which it was ready to run and other processes
had the processors (Linux records that for the main thread of each job). As many
jobs are advised as keep the processors busy: processors / CPU part, and half as
many more as long as that ends 5 % sooner; but no more than there are jobs, or
than fit into memory. If the jobs used the processors for more than 90 % of
their time, no more are advised than ran. If other programs used them and it is
not known how long jobs were ready to run, no more are advised either, and the
CPU part is a range: at least the CPU time, at most all time that is not known
to be waiting. Shortest-first has the best mean turnaround. Longest-first is
advised if it ends 10 % sooner. The prediction simulates the jobs on the
processors that other programs left in the run, which all threads share equally.
Starts keep the --delay of the run.

The range of the error has these parts: 3 %; 10 % of a job, less with many jobs;
the difference between the model and the measured run; what is not recorded;
half of the part of the jobs that were ended early, and half of the part that is
not in the record; other programs; more waiting jobs than in the run. Jobs that
wait for the same disk or server slow each other down, which is not predicted.

Memory counts only where it is known: the resident set of a job is its own if it
is larger than that of minder. It is that of the largest process of a job.

A job that a signal, --timeout or short memory ended counts with the time that
it ran, although it may need longer. Jobs that are not in the record, because
the run ended before they did, count as like the others; if it is not known how
many there are, they are left out. A line tells how many jobs are in the record.
Jobs that could not be started are left out. A job that was retried counts with
its last attempt.

Keys of --json: run; jobs (those with times); total, or null if it is not known;
recorded (those that have an end in the record); cpu_part, or null if it is a
range; cpu_part_bounds; own (the times of the shortest, the median and the
longest job), processors, busy (the part of their time, with all programs),
others (the part that other programs used), slots, measured, delay; one_by_one,
as_run, advised and other_order, each with slots, order, elapsed, mean, p95;
limit (jobs, processors, busy, others, memory, delay), memory, error, doubts,
attempts, retried, not_started (could not be started), ended_early, not_run, or
null if it is not known, left_out, killed; flags. Times are in seconds, parts
and error from 0 to 1.

Exit status:
  0        there is an advice
  141      stdout was closed by its reader
  255      no advice, or any other error; one line on stderr describes it";
