//! Texts that xargs prints about itself and the system.

use std::io::{IsTerminal, stdin};

use super::limits::Limits;
use crate::commands::xargs::XargsPlan;
use crate::ui::write_stderr;

/// The largest number of jobs that a user may ask for.
pub(super) const JOBS_MAX: i64 = i32::MAX as i64;

/// The text of `--version`. Scripts look for `GNU` to know which options there are.
pub(super) const VERSION: &str =
    concat!("minder ", env!("CARGO_PKG_VERSION"), "\nAs `xargs`, it follows xargs of GNU findutils 4.9.0.\n");

/// The text of `--help`.
pub(in crate::compat) const HELP: &str = "\
minder as xargs: its command line, run by minder.

Usage: xargs [OPTION]... [COMMAND [INITIAL-ARGUMENT]...] < ARGUMENTS

  -0, --null                  arguments end with NUL (find -print0)
  -d, --delimiter=CHARACTER   arguments end with this character; \\n and other
                              escapes
  -a, --arg-file=FILE         read arguments from FILE; jobs read standard input
  -E END, -e, --eof[=END]     an argument END ends the input
  -I TEXT, -i, --replace[=TEXT]
                              replace TEXT (-i: {}) by each line of the input
  -L N, -l, --max-lines[=N]   at most N lines per command (-l: 1)
  -n, --max-args=N            at most N arguments per command
  -s, --max-chars=N           at most N bytes per command
  -x, --exit                  stop if the arguments of -n or -L do not fit
  -P, --max-procs=N           run N commands at once; 0: as many as possible
      --process-slot-var=NAME pass the number of the slot in this variable
  -r, --no-run-if-empty       run nothing if there are no arguments
  -t, --verbose               print commands before they run
  -p, --interactive           ask before each command
  -o, --open-tty              let commands read the terminal
      --show-limits           print the limits on the length of a command
      --help, --version

Without -0 and -d, blanks and newlines separate arguments, and quotes and
backslashes protect them. Without a command, xargs runs echo. docs/from-xargs.md
compares the options with those of `minder run`.
";

/// Prints what `--show-limits` prints, on stderr.
pub(super) fn show_limits(limits: &Limits, plan: &XargsPlan) {
    let Limits { environment, most } = limits;
    let usable = most.saturating_sub(*environment);
    let mut text = format!(
        "Your environment variables take up {environment} bytes\n\
         POSIX upper limit on argument length (this system): {most}\n\
         POSIX smallest allowable upper limit on argument length (all systems): 4096\n\
         Maximum length of command we could actually use: {usable}\n\
         Size of command buffer we are actually using: {}\n\
         Maximum parallelism (--max-procs must be no greater): {JOBS_MAX}\n",
        plan.size_max
    );
    if stdin().is_terminal() {
        text += "\nExecution of xargs will continue now, and it will try to read its input and run \
                 commands; if this is not what you wanted to happen, please type the end-of-file \
                 keystroke.\n";
        if plan.run_if_empty {
            text += &format!(
                "Warning: {} will be run at least once.  If you do not want that to happen, then press \
                 the interrupt keystroke.\n",
                plan.program.display()
            );
        }
    }
    write_stderr(text.as_bytes());
}
