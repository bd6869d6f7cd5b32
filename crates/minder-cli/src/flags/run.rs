//! Flags of `minder run`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::control::ControlFlags;
use super::eyes::DisplayFlags;
use super::input::{ArityFlags, InputFlags, PlaceholderFlags};
use super::output::{OutputFlags, RecordFlags};
use super::pipe::PipeFlags;

/// See [`crate::verbs::run`].
#[derive(Debug, Args)]
#[command(
    override_usage = "minder run [FLAGS] COMMAND… ::: ARGUMENT…\n       … | minder run [FLAGS] COMMAND…",
    after_help = short_after_help(),
    after_long_help = after_help(),
    args_override_self = true
)]
pub(crate) struct RunFlags {
    /// How many jobs at once; N%, +N, -N, 0 (all) or a file.
    ///
    /// N, N% of the processors, N more or fewer than there are, 0 for all; or a file with such a
    /// number, which is read again while the run goes on. One a processor unless you say
    /// otherwise.
    #[arg(
        short = 'j',
        long,
        visible_short_alias = 'P',
        visible_alias = "max-procs",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub(crate) jobs: Option<OsString>,

    #[command(flatten)]
    pub(crate) input: InputFlags,

    #[command(flatten)]
    pub(crate) arity: ArityFlags,

    #[command(flatten)]
    pub(crate) placeholders: PlaceholderFlags,

    #[command(flatten)]
    pub(crate) output: OutputFlags,

    #[command(flatten)]
    pub(crate) eyes: DisplayFlags,

    #[command(flatten)]
    pub(crate) control: ControlFlags,

    #[command(flatten)]
    pub(crate) pipe: PipeFlags,

    #[command(flatten)]
    pub(crate) record: RecordFlags,

    /// The shell for a command that is one string.
    ///
    /// One string with blanks or shell characters is a shell line. The shell is one that quotes as
    /// POSIX says (sh, dash, bash, ksh, zsh, busybox …), which is called as `SHELL -c LINE`; or
    /// pwsh or powershell; on Windows also cmd, which is the usual one there.
    #[arg(long, value_name = "PATH", help_heading = "Running")]
    pub(crate) shell: Option<OsString>,

    /// Each argument is a line for the shell: the command is the argument alone.
    #[arg(long, hide = true)]
    pub(crate) script: bool,

    /// Give jobs what GNU parallel gives them in the environment: PARALLEL_SEQ, PARALLEL_JOBSLOT,
    /// PARALLEL_PID. The record of a run knows by it that the run is in GNU parallel's manner.
    #[arg(long, hide = true)]
    pub(crate) parallel_env: bool,

    /// Outputs that stay open.
    ///
    /// What to do when a job has ended but something that it started holds its output open.
    #[arg(long, value_name = "HOW", default_value = "close", help_heading = "Running")]
    pub(crate) leak: Leak,

    /// How many seconds jobs have to end after Ctrl-C.
    ///
    /// Then they are killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, help_heading = "Running")]
    pub(crate) grace: u64,

    /// The wait mechanism; `minder doctor` lists them.
    #[arg(long, value_name = "NAME", env = "MINDER_BACKEND", help_heading = "Running")]
    pub(crate) backend: Option<String>,

    /// Run without guardians: `kill -9` of minder leaves its jobs running.
    ///
    /// Windows has none and needs none: it ends the jobs with minder, whatever ends that.
    #[arg(long, help_heading = "Running")]
    pub(crate) no_guard: bool,

    /// The command, then `:::` and arguments; or they come on standard input.
    ///
    /// Without `:::`, each line of standard input is an argument.
    ///
    /// Several words are run directly, without a shell. One string with blanks or shell characters
    /// is a shell line. `{}` stands for the argument; where there is none, the argument comes
    /// last. With --resume and its kin, and without --joblog, the id of a run stands here,
    /// behind all flags.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", help_heading = "Arguments")]
    pub(crate) words: Vec<OsString>,
}

/// What to do with an output that stays open after its job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Leak {
    /// Close it after 100 ms of silence, and say so.
    Close,
    /// Read it to its end.
    Wait,
}

/// What stands first in the long help.
pub(crate) const ABOUT: &str = "\
Run a command for each argument, several at once.

Examples:
  minder run 'wc -c {}' ::: *.txt             one string: a shell line, with values quoted
  minder run gzip -9 {} ::: *.log             several words: run directly, without a shell
  ls *.log | minder run -j4 gzip -9           each line of standard input is an argument
  minder run -j4 --bar ./test.sh {} ::: a b   a bar on the terminal
  minder run -k --tag ./test.sh {} ::: a b    in the order of the input, lines with tags
  minder run --retries 3 --timeout 60 …       up to three starts of a minute each
  minder run --resume last                    what that run had left to do

One line a flag: minder run -h. Topics, with examples: minder help.";

const AFTER: &str = "\
Placeholders:
  {}   the argument        {.}  without its extension     {#}  the job's number, from 1
  {/}  its last part       {//} its folder                {%}  the job's slot, 1 to N
  {/.} its last part without extension                    {1}  the first column

If you know GNU parallel:
  minder parallel …  takes its command line; here some things are otherwise:
  values             are parameters, never pasted: quotes around {} do no harm
  several words      are run directly: `'|'` and `'>'` work in one string only
  -q                 takes the words as they are, one string too: no shell at all
  {= … =}, Perl      not there: see --plus, --header, --rpl 'NAME TEXT'
  -t, -v             show commands that can be pasted, with values quoted
  exit status        the same, but 130 and 143 where a signal ended the run
  the end of a job   by --timeout, --halt now, Ctrl-C takes all that it started;
                     a daemon that left it goes with Ctrl-C only
  -S, --sql …        no other machines, no SQL server: see `minder log --sql`

No value becomes shell code. In a shell line, values are handed to the shell as
positional parameters, to cmd and PowerShell as variables; where a value could not
stay a value (in backticks, in here-documents, in program text for another shell …)
the line is refused, with the reason.

Output comes job by job: each job's when it ends, stdout and stderr kept apart, byte
for byte; a job that runs alone is seen as it writes. -k, --lb and -u show it in other
ways. What does not fit into memory waits in private files. Jobs have an empty standard
input and a process group of their own.

A run leaves a record, private to you, in $MINDER_STATE_DIR, else in
$XDG_STATE_HOME/minder, else in ~/.local/state/minder: each job's argument, times,
status, and (until it is shown) its output; of a failed job also the last 2 KiB of
stderr. `minder log` reads it. Whatever ends a run, `minder run --resume RUN` runs what
had not ended, and shows what was not shown. Jobs that were running then run again,
and what was seen of them is seen again. Once a day runs older than 30 days are removed,
and the oldest beyond 1,000 runs or 1 GiB.

Ctrl-C once starts nothing more and asks the jobs to end (TERM); twice kills them.
When minder itself is killed, also by `kill -9`, everything that it started dies
within a second. Not so: processes that became another user's (sudo), work that was
handed to a server that was running before (docker, systemd-run, at, ssh's far
side), and what is left when both of minder's guardians are killed in one moment.

On Windows the record is in $MINDER_STATE_DIR, else in %LOCALAPPDATA%\\minder. Jobs
cannot be asked to end there: Ctrl-C, Ctrl-Break and a closed window end them at once,
and minder with the exit status 0xC000013A.";

/// The short help's end.
fn short_after_help() -> String {
    format!("Examples: minder run --help. Topics: minder help.\n\n{}", crate::exit::HELP)
}

/// The long help's end: placeholders, what is promised and what not, exit statuses.
fn after_help() -> String {
    format!("{AFTER}\n\n{}", crate::exit::HELP)
}
