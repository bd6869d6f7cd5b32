//! What people read: messages, the bar, the last lines.

pub(crate) mod chart;
mod progress;
mod summary;

pub(crate) use self::{
    progress::{Progress, ProgressOptions, ProgressSnapshot, SlowJobs},
    summary::{EndCause, HaltSummary, RunStats, Summary, signal_name},
};

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

/// An error with what was tried, as one line. Errors of the library name their cause themselves.
pub(crate) fn format_error(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        parts.push(cause.downcast_ref::<io::Error>().map_or_else(|| cause.to_string(), os_error_text));
        if let Some(error) = cause.downcast_ref::<minder::Error>() {
            let exhausted = error.kind() == minder::ErrorKind::Exhausted;
            let cure = if exhausted { " (`minder doctor` shows the limits)" } else { "" };
            return parts.join(": ") + cure;
        }
    }
    parts.join(": ")
}

/// The system's text as a fragment: `No space left on device (os error 28)` → `no space left on
/// device`.
pub(crate) fn os_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
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

/// A duration as people write it: `42 ms`, `1.42 s`, `18.2 s`, `4 min 7 s`, `2 h 5 min`.
pub(crate) fn time(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..10 => format!("{:.2} s", time.as_secs_f64()),
        10..100 => format!("{:.1} s", time.as_secs_f64()),
        100..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `1 job`, `2 jobs`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn durations_are_written_as_people_do() {
        let texts =
            [42, 1_420, 18_240, 247_000, 7_500_000].map(|millis| super::time(Duration::from_millis(millis)));
        assert_eq!(texts, ["42 ms", "1.42 s", "18.2 s", "4 min 7 s", "2 h 5 min"]);
    }
}
