//! What people read: messages, the bar, the last lines.

pub(crate) mod chart;
mod progress;
mod summary;

pub(crate) use self::{
    progress::{Progress, ProgressOptions, SlowJobs},
    summary::{Summary, signal_name},
};
pub(crate) use minder_runner::text::{count, format_error, os_error_text, time};

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, LineWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use minder::Interest;
use minder::os::wait_ready;
use minder_os::stdio::{StdStream, std_file, std_was_closed};
use minder_os::terminal::write_console;

use crate::exit;

/// Says one line to the person, on stderr. Whoever closed it does not want to hear.
pub(crate) fn message(line: &str) {
    // One write, so that lines of several threads or programs do not mix.
    let _ = io::stderr().write_all(format!("minder: {line}\n").as_bytes());
}

/// Shows a command that starts, on stderr.
pub(crate) fn command_message(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Says one line unless that would have to wait: for those who have something better to do than to
/// wait for somebody who does not read.
pub(crate) fn try_message(line: &str) {
    if would_be_heard().unwrap_or(true) {
        message(line);
    }
}

fn would_be_heard() -> Option<bool> {
    // A handle there does not tell whether there is room behind it.
    if std::env::consts::FAMILY == "windows" {
        return None;
    }
    wait_ready(&io::stderr(), Interest::WRITABLE, Some(Instant::now())).ok()
}

/// Fails if standard output was closed before we began. Rust's runtime has opened the null device
/// in its place, which would take everything.
pub(crate) fn open_output() -> Result<()> {
    if std_was_closed(StdStream::Output) {
        anyhow::bail!("cannot write to standard output: it is closed");
    }
    Ok(())
}

/// Prints data on stdout. One whose reader is gone ends it quietly.
pub(crate) fn with_stdout(print: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<ExitCode> {
    open_output()?;
    let file = std_file(StdStream::Output)?;
    // Whole lines for a terminal: no character is torn.
    let mut out: Box<dyn Write> = match file.is_terminal() {
        true => Box::new(LineWriter::new(Terminal(file))),
        false => Box::new(BufWriter::new(file)),
    };
    let result = print(&mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::from(exit::BROKEN_PIPE)),
        // With a context it is about something else, such as a file that was read.
        Err(error) if error.chain().next().is_some_and(<dyn std::error::Error>::is::<io::Error>) => {
            Err(error.context("cannot write to standard output"))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

/// A terminal, in whatever encoding it takes text.
struct Terminal(File);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match write_console(&self.0, bytes) {
            Ok(false) => self.0.write(bytes),
            wrote => wrote.map(|_| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
