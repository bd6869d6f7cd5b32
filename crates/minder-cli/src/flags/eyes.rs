//! Flags of `minder run` about what a person sees while it runs.

use clap::{Args, ValueEnum};

/// See [`crate::verbs::run`].
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What you see while it runs")]
pub(crate) struct DisplayFlags {
    /// Show a progress bar on the terminal.
    ///
    /// With -u, where jobs write to the terminal themselves, it is a line every 30 s, as where
    /// there is no terminal.
    #[arg(long)]
    pub(crate) bar: bool,

    /// Say when the run will be over.
    #[arg(long)]
    pub(crate) eta: bool,

    /// Show the jobs that run, and for how long.
    #[arg(long)]
    pub(crate) progress: bool,

    /// Say nothing on stderr but errors.
    #[arg(long, visible_alias = "silent")]
    pub(crate) quiet: bool,

    /// Say each command on stderr when it starts.
    #[arg(short = 't', long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Print each command before its output.
    #[arg(short = 'v')]
    pub(crate) print: bool,

    /// Colours: auto, always, never; without WHEN: each job its own.
    ///
    /// Those of minder's own messages are there on a terminal unless you say otherwise. Without a
    /// word, or with `jobs`, each job's output has a colour of its own: on whatever standard
    /// output is, and NO_COLOR does not change that, for it was asked for. A line that --lb
    /// shows without its end has no colour. With -u there is none.
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "jobs",
        hide_possible_values = true
    )]
    pub(crate) color: Option<Colour>,

    /// Output of jobs that failed is coloured.
    ///
    /// It is shown when the job is over, with -k too. With --lb and -u there is none.
    #[arg(long, visible_alias = "cf")]
    pub(crate) color_failed: bool,

    /// As with --lb, a line without its end has no colour.
    #[arg(long, hide = true)]
    pub(crate) color_lines: bool,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
    /// Each job's output has a colour of its own.
    Jobs,
}
