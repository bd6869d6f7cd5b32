//! The exit statuses of the command, and the table that the help prints.

pub use minder_runner::exit_status::{BROKEN_PIPE, INTERRUPTED, OTHER, TERMINATED};

/// The table of exit statuses in the help.
pub const HELP: &str = "\
Exit status:
  0        all jobs succeeded
  1 to 100 the number of failed jobs
  101      more than 100 jobs failed
  130, 143 a signal ended the run: Ctrl-C, TERM (the run ends by that signal)
  141      stdout was closed by its reader, as with `| head`
  255      any other error; one line on stderr describes it";
