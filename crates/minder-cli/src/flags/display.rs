//! Flags of `minder run` that select what is displayed during the run.

use std::time::Duration;

use clap::{Args, ValueEnum};

// See `crate::commands::run`.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Progress and messages")]
pub(crate) struct DisplayFlags {
    /// Show a progress bar on the terminal.
    ///
    /// With -u, or without a terminal, a line is printed every 30 s instead, or every --heartbeat.
    #[arg(long)]
    pub(crate) bar: bool,

    /// Estimate when the run will finish.
    ///
    /// The estimate is based on the jobs that have finished. Until there are as many of them as
    /// jobs run at once, it is based on earlier runs of the same command (up to 8 MB of their
    /// journals).
    #[arg(long)]
    pub(crate) eta: bool,

    /// Show the running jobs, and for how long they have been running.
    #[arg(long)]
    pub(crate) progress: bool,

    /// Show no status line on the terminal.
    ///
    /// The status line appears when a run has lasted for two seconds: jobs that are done, running and
    /// failed, and the time. It is not shown with --tty, -u and --quiet, in the background, or if
    /// standard output is a pipe, whose reader may write to the terminal.
    #[arg(long)]
    pub(crate) no_status: bool,

    /// Print the state after TIME of silence, without a terminal.
    ///
    /// The line on stderr shows that the run is alive; 0 disables it. TIME is in seconds, or with a unit.
    /// Default: 30 s if the environment variable CI is set, as most CI systems do, else none.
    #[arg(long, value_name = "TIME", value_parser = minder_ui::units::time)]
    pub(crate) heartbeat: Option<Duration>,

    /// A line for jobs that end: fail, slow, pass, all …
    ///
    /// The levels are none, fail, retry, slow, pass and all.
    /// It is printed on stderr, after the output of the job. Each level includes those before it.
    /// `fail`: jobs that failed. `retry`: failed attempts of jobs that run again. `slow`: jobs that have
    /// been running far longer than the others. `pass`: jobs that succeeded. `all`: jobs that the end of
    /// the run cut off.
    /// Default: `fail` if stderr is a terminal, else `none`.
    #[arg(long, value_name = "LEVEL", conflicts_with = "quiet", hide_possible_values = true)]
    pub(crate) status_level: Option<StatusLevel>,

    /// Notify when a run of at least a minute, or TIME, has ended.
    ///
    /// On the desktop, by notify-send or osascript; without one, through the terminal, by OSC 9, OSC 777
    /// or the bell. A run that a signal ends does not notify.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "60",
        value_parser = minder_ui::units::time
    )]
    pub(crate) notify: Option<Duration>,

    /// Print only errors on stderr.
    ///
    /// Also jobs that left their output open. Failed jobs are not listed at the end.
    #[arg(long, visible_alias = "silent")]
    pub(crate) quiet: bool,

    /// Print each command on stderr when it starts.
    #[arg(short = 't', long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Print each command before its output.
    #[arg(short = 'v')]
    pub(crate) print: bool,

    /// Colors: auto, always, never; without WHEN: one for each job.
    ///
    /// By default (auto), minder's messages are colored on a terminal. Without WHEN, or with `jobs`,
    /// the output of each job has its own background color, even if standard output is not a
    /// terminal or NO_COLOR is set. An unterminated line shown by --lb, and all output with -u, has
    /// no color.
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "jobs",
        hide_possible_values = true
    )]
    pub(crate) color: Option<Color>,

    /// Color the output of failed jobs.
    ///
    /// Output is then shown when the job has finished, also with -k. No effect with --lb and -u.
    #[arg(long, visible_alias = "cf")]
    pub(crate) color_failed: bool,

    /// Do not color unterminated lines, as with --lb.
    #[arg(long, hide = true)]
    pub(crate) color_lines: bool,
}

/// The ends of jobs that have a line on stderr. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum StatusLevel {
    /// None.
    None,
    /// Jobs that failed.
    Fail,
    /// Failed attempts of jobs that run again.
    Retry,
    /// Jobs that have been running far longer than the others.
    Slow,
    /// Jobs that succeeded.
    Pass,
    /// Jobs that the end of the run cut off.
    All,
}

/// The condition under which colors are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
    /// For the output of jobs, one color for each job.
    Jobs,
}
