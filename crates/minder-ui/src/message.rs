//! Messages for people, on standard error.

use std::io;
use std::time::Instant;

use minder::os::wait_ready;
use minder::poll::Interest;
use minder_os::escape;

use crate::symbols::Symbols;

/// Prints one line to stderr. What a terminal would interpret is escaped, whatever text it comes from.
/// Write errors are ignored.
pub fn message(line: &str) {
    styled_message(&escape(line.as_bytes()));
}

/// Prints one line with colors to stderr. Foreign text in it is escaped by the caller.
pub fn styled_message(line: &str) {
    // One write, so that lines of several threads or programs do not mix.
    write_stderr(message_line(line).as_bytes());
}

/// Writes to stderr. Outside of a run, this waits for its reader, even if the stream is non-blocking. Write
/// errors are ignored.
pub fn write_stderr(bytes: &[u8]) {
    minder_runner::write_stderr(bytes);
}

/// Returns a line with the name of the program before it and the end of the line.
pub fn message_line(line: &str) -> String {
    format!("minder: {}\n", Symbols::of_locale().convert(line))
}

/// Prints the command line of a job that starts, or another line without the name of the program. Foreign
/// text in it is escaped by the caller.
pub fn command_message(line: &str) {
    write_stderr(format!("{line}\n").as_bytes());
}

/// Runs `print`, unless a write to stderr would block because its reader does not read.
pub fn try_to(print: impl FnOnce()) {
    if stderr_is_writable().unwrap_or(true) {
        print();
    }
}

/// Returns whether a write to stderr would not block. `None`: it is not known.
pub fn stderr_is_writable() -> Option<bool> {
    if minder_runner::stderr_is_stalled() {
        return Some(false);
    }
    // A handle on Windows does not report whether its pipe has room.
    if std::env::consts::FAMILY == "windows" {
        return None;
    }
    wait_ready(&io::stderr(), Interest::WRITABLE, Some(Instant::now())).ok()
}
