//! What people see: messages, the progress display, the summary, tables, charts, colors.

pub(crate) mod color;
pub(crate) mod format;
pub(crate) mod symbols;
pub(crate) mod table;
pub(crate) mod chart;
mod message;
mod notify;
mod progress;
mod stdout;
mod summary;
mod job_line;

pub(crate) use minder_runner::text::{count, format_bytes, format_error, os_error_text, time};

pub(crate) use self::{
    job_line::JobLines,
    message::{command_message, message, styled_message, try_to, write_stderr},
    notify::notify,
    progress::{Heartbeat, Progress, ProgressOptions, SlowJobs},
    stdout::{check_stdout, print_help, with_stdout},
    summary::{Summary, failure_text, signal_name},
};
