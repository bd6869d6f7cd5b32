//! The output of the command `minder` for people and programs: messages on stderr, tables, colors,
//! symbols, units, and rows as CSV or JSON lines. The command and its laboratory share it.

pub mod exit;
pub mod units;
pub mod color;
pub mod format;
pub mod symbols;
pub mod table;
pub mod rows;
mod message;
mod stdout;

pub use minder_runner::text::{count, format_bytes, format_error, os_error_text, time};

pub use self::{
    message::{
        command_message, message, message_line, stderr_is_writable, styled_message, try_to, write_stderr,
    },
    stdout::{check_stdout, print_help, with_stdout},
};
