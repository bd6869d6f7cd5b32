//! Flags of `minder run` about its input: where arguments come from, how they are cut, and how many
//! a job gets.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use crate::units::{count, size};

/// See [`crate::verbs::run`].
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputFlags {
    /// Take arguments from this file, one a line; `-` is standard input.
    ///
    /// Several times: all combinations.
    #[arg(short = 'a', long, value_name = "FILE")]
    pub(crate) arg_file: Vec<OsString>,

    /// Arguments end in a NUL byte, not in a newline (find -print0).
    #[arg(short = '0', long)]
    pub(crate) null: bool,

    /// Arguments end in this text; \n, \t, \0, \xHH and the like are known.
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(crate) delimiter: Option<OsString>,

    /// Lines have columns with this between them, for {1}, {2} …
    ///
    /// It is a regular expression. See `minder help input`.
    #[arg(short = 'C', long, value_name = "REGEXP")]
    pub(crate) colsep: Option<String>,

    /// Lines are rows of CSV, with --colsep or a comma between columns.
    #[arg(long)]
    pub(crate) csv: bool,

    /// The first line (or N lines) names the columns, for {name}.
    ///
    /// `:` is one line; with 0, files name themselves. With --pipe, the header goes before each
    /// block.
    #[arg(long, value_name = "REGEXP")]
    pub(crate) header: Option<String>,

    /// Pass over the first line.
    #[arg(long)]
    pub(crate) skip_first_line: bool,

    /// Go through all sources side by side.
    ///
    /// Shorter ones begin anew.
    #[arg(long, visible_alias = "xapply")]
    pub(crate) link: bool,

    /// Take blanks away on this side.
    #[arg(long, value_name = "WHERE")]
    pub(crate) trim: Option<Trim>,

    /// The argument of this text ends the input.
    #[arg(short = 'E', long = "eof", value_name = "TEXT")]
    pub(crate) eof: Option<OsString>,

    /// Pass over arguments that are empty or blank.
    #[arg(short = 'r', long)]
    pub(crate) no_run_if_empty: bool,

    /// Run the jobs in random order: all of the input is read first.
    #[arg(long, conflicts_with = "order")]
    pub(crate) shuf: bool,

    /// Which go first.
    ///
    /// As given, or, by the times of earlier runs of this command, the shortest or the longest, or
    /// by chance. All of the input is read first. Jobs keep the numbers that they have in the
    /// input. What was never run counts as the median of what was.
    #[arg(long, value_name = "HOW")]
    pub(crate) order: Option<OrderFlag>,

    /// A number for --shuf: the same order for the same number.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// The word before arguments, in place of `:::`.
    #[arg(long, value_name = "WORD", default_value = ":::")]
    pub(crate) arg_sep: OsString,

    /// The word before files, in place of `::::`.
    #[arg(long, value_name = "WORD", default_value = "::::")]
    pub(crate) arg_file_sep: OsString,

    /// How many jobs there will be, for the bar.
    ///
    /// Where the input does not tell.
    #[arg(long, visible_alias = "total", value_name = "N", value_parser = count)]
    pub(crate) total_jobs: Option<u64>,
}

/// Flags about how many arguments a job gets.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Arguments of a job")]
pub(crate) struct ArityFlags {
    /// At most N arguments a job; 0: one is taken, and none given.
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub(crate) max_args: Option<u64>,

    /// The same; {1} to {N} stand for them. With --pipe: N records a job.
    ///
    /// They are empty where there are too few.
    #[arg(short = 'N', long, value_name = "N", value_parser = count)]
    pub(crate) max_replace_args: Option<u64>,

    /// At most N lines a job, without blank ones.
    ///
    /// A line that ends in a blank goes on in the next.
    #[arg(short = 'L', long, visible_alias = "max-lines", value_name = "N", value_parser = count)]
    pub(crate) lines: Option<u64>,

    /// As many as fit, shared out among the slots; words with {} repeat.
    ///
    /// A word with {} is repeated for each argument.
    #[arg(short = 'X')]
    pub(crate) context: bool,

    /// The same; {} stands for all of them.
    #[arg(short = 'm')]
    pub(crate) multiple: bool,

    /// As -m, without sharing out.
    #[arg(long)]
    pub(crate) xargs: bool,

    /// The most bytes that a command may have.
    #[arg(short = 's', long, value_name = "BYTES", value_parser = size)]
    pub(crate) max_chars: Option<usize>,

    /// End when a command would have more bytes than -s allows.
    #[arg(short = 'x', long)]
    pub(crate) exit: bool,
}

/// Flags about placeholders.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Placeholders")]
pub(crate) struct PlaceholderFlags {
    /// Write this in place of {}.
    #[arg(short = 'I', long, value_name = "TEXT")]
    pub(crate) replace: Option<OsString>,

    /// Write this in place of {.}.
    #[arg(long, visible_alias = "er", value_name = "TEXT")]
    pub(crate) extensionreplace: Option<OsString>,

    /// Write this in place of {/}.
    #[arg(long, visible_alias = "bnr", value_name = "TEXT")]
    pub(crate) basenamereplace: Option<OsString>,

    /// Write this in place of {//}.
    #[arg(long, visible_alias = "dnr", value_name = "TEXT")]
    pub(crate) dirnamereplace: Option<OsString>,

    /// Write this in place of {/.}.
    #[arg(long, visible_alias = "bner", value_name = "TEXT")]
    pub(crate) basenameextensionreplace: Option<OsString>,

    /// Write this in place of {#}.
    #[arg(long, value_name = "TEXT")]
    pub(crate) seqreplace: Option<OsString>,

    /// Write this in place of {%}.
    #[arg(long, value_name = "TEXT")]
    pub(crate) slotreplace: Option<OsString>,

    /// Know more of them, such as {..} {+/} {##} {:-default}.
    ///
    /// Also {+.} {:2:3} {#start} {%end} {/old/new} {^a}: see `minder help placeholders`.
    #[arg(long)]
    pub(crate) plus: bool,

    /// One of your own, as in '{thumb} {/.}-thumb.png'.
    ///
    /// Its name, a blank, and what it stands for.
    #[arg(long, value_name = "NAME TEXT")]
    pub(crate) rpl: Vec<OsString>,

    /// Take words as they are: no shell, whatever is in them.
    #[arg(short = 'q', long)]
    pub(crate) quote: bool,

    /// Fail jobs whose arguments do not match this.
    ///
    /// A regular expression, from the start of an argument to its end, such as '[0-9]+'. The jobs
    /// that match run. What matches may stand where a value is refused otherwise, as in 'sed -n
    /// {}p FILE': see `minder help values`. A part such as {/} is a part of what matched.
    #[arg(long, value_name = "REGEXP", allow_hyphen_values = true)]
    pub(crate) only: Option<String>,

    /// Fail jobs with a value that begins with -.
    ///
    /// Programs read such a value as an option, and some options run commands. The other jobs run.
    #[arg(long)]
    pub(crate) no_dash_values: bool,

    /// Copy this file, placeholders filled in.
    ///
    /// For each job, with placeholders in it and in its name replaced: FILE=NAME.
    /// Of copies with one name the last one stays; on Windows case makes no difference in it.
    #[arg(long, visible_alias = "tmpl", value_name = "FILE=NAME")]
    pub(crate) template: Vec<OsString>,
}

/// Where blanks are taken away.
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

/// Which jobs run first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderFlag {
    /// As they stand in the input.
    Given,
    /// Those that took the least time in earlier runs.
    Shortest,
    /// Those that took the most.
    Longest,
    /// By chance.
    Random,
}
