//! Flags of `minder run` for its input: where arguments come from, how lines are split, and how many
//! arguments a job gets.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use minder_ui::units::{count, size};

// See `crate::commands::run`.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputFlags {
    /// Read arguments from a file, one per line.
    ///
    /// `-` is standard input. If given several times, jobs get all combinations.
    #[arg(short = 'a', long, value_name = "FILE")]
    pub(crate) arg_file: Vec<OsString>,

    /// Run each argument as a shell line, without a COMMAND.
    ///
    /// Arguments are code then: use it only for input that you would type. Without this flag and
    /// without a COMMAND, arguments after `:::` are run, and lines of files and of stdin are refused.
    /// Placeholders in a line are text.
    #[arg(long)]
    pub(crate) commands: bool,

    /// Arguments end with NUL, as from find -print0.
    #[arg(short = '0', long)]
    pub(crate) null: bool,

    /// Arguments end with this text; escapes: \n, \t, \0, \xHH …
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(crate) delimiter: Option<OsString>,

    /// Split the input at blanks, as xargs does.
    ///
    /// The rules of xargs: a space, tab or newline separates arguments, except inside '…' or "…" and
    /// after a backslash. With -L, the words of a line are the arguments of one job.
    #[arg(long = "words")]
    pub(crate) split_words: bool,

    /// Split lines at this into columns {1}, {2} …
    ///
    /// The separator is a regular expression. See `minder help input`.
    #[arg(short = 'C', long, value_name = "REGEXP")]
    pub(crate) colsep: Option<String>,

    /// Read CSV, separated by a comma or --colsep.
    #[arg(long)]
    pub(crate) csv: bool,

    /// `:`: the first line names the columns, for {name}.
    ///
    /// N: the first N lines do; with 0, the columns are named after their files. With --pipe, the header is
    /// repeated before each block.
    #[arg(long, value_name = "REGEXP")]
    pub(crate) header: Option<String>,

    /// Skip empty lines, and lines that begin with `#`.
    ///
    /// Of files and standard input; blanks may precede the `#`. Arguments after `:::` are not concerned.
    #[arg(long)]
    pub(crate) skip_comments: bool,

    /// Skip the first line.
    #[arg(long)]
    pub(crate) skip_first_line: bool,

    /// Take one argument from each source.
    ///
    /// Shorter sources start over.
    #[arg(long, visible_alias = "xapply")]
    pub(crate) link: bool,

    /// Remove spaces and tabs on this side.
    #[arg(long, value_name = "WHERE")]
    pub(crate) trim: Option<Trim>,

    /// Stop reading the input at this argument.
    #[arg(short = 'E', long = "eof", value_name = "TEXT")]
    pub(crate) eof: Option<OsString>,

    /// Skip empty and blank arguments.
    #[arg(short = 'r', long)]
    pub(crate) no_run_if_empty: bool,

    /// Run the jobs in random order; reads the whole input first.
    #[arg(long, conflicts_with = "order", help_heading = "Running jobs")]
    pub(crate) shuf: bool,

    /// Job order.
    ///
    /// In input order (given), the shortest or longest first by their durations in earlier runs of
    /// this command, or in random order. The whole input is read first. Jobs keep their numbers. A
    /// job is known again by its arguments: its newest run counts in which it ended by itself, of
    /// the newest 20 runs with the same command. A job that never ran counts as the median of all
    /// others of the command. `minder advise` tells which order is best.
    #[arg(long, value_name = "HOW", help_heading = "Running jobs")]
    pub(crate) order: Option<OrderFlag>,

    /// Seed for --shuf: the same seed gives the same order.
    #[arg(long, value_name = "N", help_heading = "Running jobs")]
    pub(crate) seed: Option<u64>,

    /// Use this instead of `:::` before arguments.
    #[arg(long, value_name = "TEXT", default_value = ":::")]
    pub(crate) arg_sep: OsString,

    /// Use this instead of `::::` before files.
    #[arg(long, value_name = "TEXT", default_value = "::::")]
    pub(crate) arg_file_sep: OsString,

    /// The number of jobs, for the bar.
    ///
    /// Useful where minder cannot count the input.
    #[arg(long, visible_alias = "total", value_name = "N", value_parser = count)]
    #[arg(help_heading = "Running jobs")]
    pub(crate) total_jobs: Option<u64>,
}

// Flags for the number of arguments per job.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Arguments per job")]
pub(crate) struct ArityFlags {
    /// Up to N arguments per job; 0: use one, insert none.
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub(crate) max_args: Option<u64>,

    /// Like -n, with placeholders {1} to {N}. With --pipe: N records.
    ///
    /// Placeholders without an argument are empty.
    #[arg(short = 'N', long, value_name = "N", value_parser = count)]
    pub(crate) max_replace_args: Option<u64>,

    /// At most N non-blank lines per job.
    ///
    /// A line that ends in a space continues on the next line.
    #[arg(short = 'L', long, visible_alias = "max-lines", value_name = "N", value_parser = count)]
    pub(crate) lines: Option<u64>,

    /// As many as fit, divided among the slots; text with {} repeats.
    ///
    /// A part of the command that contains {} is repeated for each argument.
    #[arg(short = 'X')]
    pub(crate) context: bool,

    /// Like -X, but {} stands for all of the job's arguments.
    #[arg(short = 'm')]
    pub(crate) multiple: bool,

    /// Like -m, without dividing them among the slots.
    #[arg(long)]
    pub(crate) xargs: bool,

    /// Maximum length of a command in bytes.
    #[arg(short = 's', long, value_name = "BYTES", value_parser = size)]
    pub(crate) max_chars: Option<usize>,

    /// Stop if a command would be longer than -s allows.
    #[arg(short = 'x', long)]
    pub(crate) exit: bool,
}

// Flags for placeholders.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Placeholders and values")]
pub(crate) struct PlaceholderFlags {
    /// Use this instead of {}.
    #[arg(short = 'I', long, value_name = "TEXT")]
    pub(crate) replace: Option<OsString>,

    /// Use this instead of {.}.
    #[arg(long, visible_alias = "er", value_name = "TEXT")]
    pub(crate) extensionreplace: Option<OsString>,

    /// Use this instead of {/}.
    #[arg(long, visible_alias = "bnr", value_name = "TEXT")]
    pub(crate) basenamereplace: Option<OsString>,

    /// Use this instead of {//}.
    #[arg(long, visible_alias = "dnr", value_name = "TEXT")]
    pub(crate) dirnamereplace: Option<OsString>,

    /// Use this instead of {/.}.
    #[arg(long, visible_alias = "bner", value_name = "TEXT")]
    pub(crate) basenameextensionreplace: Option<OsString>,

    /// Use this instead of {#}.
    #[arg(long, value_name = "TEXT")]
    pub(crate) seqreplace: Option<OsString>,

    /// Use this instead of {%}.
    #[arg(long, value_name = "TEXT")]
    pub(crate) slotreplace: Option<OsString>,

    /// Enable more placeholders: {..} {+/} {##} {:-default}.
    ///
    /// Also {+.} {:2:3} {#start} {%end} {/old/new} {^a}: see `minder help placeholders`.
    #[arg(long)]
    pub(crate) plus: bool,

    /// Define a placeholder, as in '{thumb} {/.}-thumb.png'.
    ///
    /// Its name, a space, and the text that replaces it.
    #[arg(long, value_name = "NAME TEXT")]
    pub(crate) rpl: Vec<OsString>,

    /// Run the command directly, never through a shell.
    #[arg(short = 'q', long)]
    pub(crate) quote: bool,

    /// Fail jobs whose arguments do not match this.
    ///
    /// A regular expression that the whole argument must match, such as '[0-9]+'. Jobs whose
    /// arguments match run. A matching value may be used where values are refused otherwise, as in
    /// 'sed -n {}p FILE': see `minder help values`. So may a part of it, such as {/}. Arithmetic,
    /// $(( {} + 1 )), accepts plain numbers without it.
    #[arg(long, value_name = "REGEXP", allow_hyphen_values = true)]
    pub(crate) only: Option<String>,

    /// Fail jobs with a value that begins with -.
    ///
    /// Programs read such a value as an option, and some options run commands. Other jobs run.
    #[arg(long)]
    pub(crate) no_dash_values: bool,

    /// Copy this file, with placeholders replaced.
    ///
    /// FILE=NAME copies FILE to NAME for each job. Placeholders are replaced in the file and in NAME.
    /// If several copies have the same name, the last one remains. On Windows, names that differ only
    /// in case are the same.
    #[arg(long, visible_alias = "tmpl", value_name = "FILE=NAME")]
    pub(crate) template: Vec<OsString>,
}

/// The sides on which spaces and tabs are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trim {
    /// Nowhere.
    N,
    /// At the left.
    L,
    /// At the right.
    R,
    /// On both sides.
    #[value(alias = "rl")]
    Lr,
}

/// The order in which jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderFlag {
    /// In the order of the input.
    Given,
    /// Those with the shortest duration in earlier runs.
    Shortest,
    /// Those with the longest duration in earlier runs.
    Longest,
    /// In random order.
    Random,
}
