//! The parts of a run that people see: messages, the progress display, the summary.

mod notify;
mod progress;
mod summary;
mod job_line;

pub(crate) use minder_ui::{
    check_stdout, command_message, count, format_bytes, format_error, message, os_error_text, print_help,
    styled_message, time, try_to, with_stdout, write_stderr,
};

pub(crate) use self::{
    job_line::{EndedCount, JobLines},
    notify::notify,
    progress::{Heartbeat, Progress, ProgressOptions, SlowJobs},
    summary::{Summary, failure_text, signal_name},
};
