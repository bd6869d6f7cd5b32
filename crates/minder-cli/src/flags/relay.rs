//! Flags of `minder relay`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use minder_ui::units::{buffer, time};

// See `crate::commands::relay`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder relay [FLAGS] [--] COMMAND [ARGUMENT]…",
    after_help = "Try: minder relay make, minder relay --pty --rows 50 --columns 132 bash",
    after_long_help = EXAMPLES
)]
pub(crate) struct RelayFlags {
    /// Give COMMAND a pseudo-terminal instead of pipes.
    ///
    /// It is the controlling terminal of COMMAND, which leads a session. Its output and errors are one
    /// stream on standard output. At the end of standard input the terminal gets its end-of-file
    /// character, usually Ctrl-D. Not on Windows.
    #[arg(long)]
    pub(crate) pty: bool,

    /// With --pty: its number of lines [default: that of the terminal of minder, or 24]
    #[arg(long, value_name = "N", requires = "pty", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rows: Option<u16>,

    /// With --pty: its number of columns [default: that of the terminal of minder, or 80]
    #[arg(long, value_name = "N", requires = "pty", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) columns: Option<u16>,

    /// Keep at most BYTES of output in memory while the reader does not read.
    ///
    /// When they are full, COMMAND waits, as it would without minder. 64k, 16M, 1G.
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = buffer)]
    pub(crate) buffer: usize,

    /// Wait at most TIME at the end for the reader to read everything: 10, 0.5, 2m.
    ///
    /// minder exits after its last byte was read, so that a reader which stops at the exit has all of
    /// them. After TIME it exits, and the rest is still in the pipe. Linux only; elsewhere minder exits
    /// when everything is written.
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = time)]
    pub(crate) linger: Duration,

    /// The command and its arguments, as they are: no shell is involved.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// The text above the flags.
pub(super) const ABOUT: &str = "\
Run one command in front of a slow reader.

minder reads the output of COMMAND all the time, and hands it on in few large
pieces. COMMAND does not wait while the reader is busy, and the reader does not
wake up for each line. A short line or a prompt is handed on at once; bulky
output waits for up to 4 ms.";

const EXAMPLES: &str = "\
Examples:
  minder relay make -j8 2>&1 | ./viewer           make need not wait for it
  minder relay --buffer 256M ./build.sh | less    256 MiB may wait for a person
  minder relay --pty ls --color=auto | cat        ls writes to a terminal
  minder relay --pty --rows 50 --columns 132 bash an editor runs a shell
  minder relay -- ./-odd-name                     a command with a hyphen

The streams:
  input     COMMAND reads the input of minder itself; --pty: minder passes it on
  output    all bytes, in order, in larger pieces; on Linux through a pipe of 1
            MiB
  errors    those of minder; after 2>&1 through the same buffer as the output,
            in order; --pty: on the same terminal as the output

At a terminal, without --pty, COMMAND is in the process group of minder:
prompts, Ctrl-C and Ctrl-Z work as without minder. Elsewhere it leads a group.

Signals: HUP, INT, QUIT, TERM, USR1, USR2 and WINCH go to COMMAND, and to its
process group unless that is the one of minder: there `kill PID` reaches COMMAND
and not what it started, as without minder (`kill %1` and `kill -- -GROUP` reach
all). A stopped COMMAND gets HUP and TERM at once. With --pty, HUP, INT and QUIT
go to the foreground processes of its terminal, and WINCH sets its size if the
input or output of minder is a terminal. TSTP suspends COMMAND with what it
started, and then minder; CONT resumes both. HUP, INT, QUIT or TERM again within
200 ms counts once. After a kill -9 of minder, COMMAND is killed with what it
started. A signal that ends COMMAND also ends minder. After the end of COMMAND,
HUP, INT, QUIT or TERM ends the wait for the reader.

If the reader closes the output, COMMAND gets the same: a broken pipe, or a
hang-up of its terminal. A process in the background that keeps the output open
is not waited for: minder stops reading when COMMAND has ended and 100 ms have
passed without output.

Exit status:
  0 to 255 that of COMMAND; if a signal ended it, minder ends by the same signal
  126      COMMAND cannot be executed
  127      COMMAND was not found
  255      any other error; one line on stderr describes it";
