//! Flags of `minder attach` and `minder cancel`: the run, and how it is shown.

use clap::Args;

use super::machines::OnInterrupt;

// See `crate::commands::run`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder attach [FLAGS] [RUN]",
    after_help = "Try: minder attach, minder attach 61c0 --bar",
    after_long_help = ATTACH_DETAILS
)]
pub(crate) struct AttachFlags {
    /// The run: its id, the first digits of the id, or `last`. Without it, the newest run on other machines
    /// that has no end.
    pub(crate) run: Option<String>,

    /// Draw a bar on the terminal, with the jobs that have ended and the time that is left.
    #[arg(long)]
    pub(crate) bar: bool,

    /// Print only errors, and what jobs write.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// What Ctrl-C does: it ends the run, or this process alone. Default: `ask` on a terminal, else `cancel`.
    #[arg(long, value_name = "HOW")]
    pub(crate) on_interrupt: Option<OnInterrupt>,
}

// See `crate::commands::cancel`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder cancel RUN",
    after_help = "Try: minder cancel 61c0",
    after_long_help = CANCEL_DETAILS
)]
pub(crate) struct CancelFlags {
    /// The run: its id, the first digits of the id, or `last`.
    pub(crate) run: String,
}

const ATTACH_DETAILS: &str = "\
Examples:
  id=$(minder run --on ssh:alpha,beta --detach ./fit.sh {} :::: list.txt)
  minder attach $id                 its output, and its exit status
  minder attach                     the newest run that has no end
  minder attach --bar --on-interrupt detach

`minder run --on PLACE --detach` leaves a run that continues alone, and so does
a minder that is killed while jobs run on other machines. This command shows
all output that was not shown, with the flags of the run, such as -k and --tag.
It waits for the jobs that still run, prints the summary, and records the end
of the run. It starts no job. Output that was shown is not shown again.

A run that another minder works on is refused. If the run has stopped and jobs
are left, this command shows what there is, and `minder resume RUN` runs the
rest.

The exit status is that of `minder run`, for all jobs that were given to other
machines: 0 if all succeeded, the number of failed jobs up to 101, and 255 if
jobs are left or for another error.";

const CANCEL_DETAILS: &str = "\
Examples:
  minder cancel 61c0                stop its jobs on all machines
  minder cancel 61c0 && minder resume 61c0 -j2

No more jobs start. Those that run are asked to end, and are killed after the
seconds of --grace. The command waits until every agent (the minder on each
machine) has ended, or shows no sign of life. Jobs that were stopped have no
result: `minder resume RUN` runs them again. A run that no agent works on is
not changed.

Exit status:
  0        no agent works on the run any more
  255      an agent may still work, or any other error";
