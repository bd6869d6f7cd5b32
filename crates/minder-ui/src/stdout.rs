//! Data for programs and people, on standard output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, LineWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use minder_os::stdio::{StdStream, std_file, std_was_closed};
use minder_os::terminal::write_console;
use minder_runner::blocking_io;

use crate::color::supports_colors;
use crate::exit;
use crate::message::write_stderr;
use crate::symbols::Symbols;

/// Fails if standard output was closed before this process started. Rust's runtime has opened the null
/// device in its place, which would discard everything.
///
/// # Errors
/// It was closed.
pub fn check_stdout() -> Result<()> {
    if std_was_closed(StdStream::Output) {
        anyhow::bail!("cannot write to standard output: it is closed");
    }
    Ok(())
}

/// Runs `print` with buffered standard output. If the reader of stdout has closed it, the exit status
/// reports that, and no message is printed.
///
/// # Errors
/// `print` fails, or stdout cannot be written.
pub fn with_stdout(print: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<ExitCode> {
    check_stdout()?;
    let out = Stdout::open()?;
    // A terminal gets whole lines, so that no multi-byte character is split.
    let mut out: Box<dyn Write> =
        if out.is_terminal { Box::new(LineWriter::new(out)) } else { Box::new(BufWriter::new(out)) };
    let result = print(&mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::from(exit::BROKEN_PIPE)),
        // An error with a context is about something else, such as a file that was read.
        Err(error) if error.chain().next().is_some_and(<dyn std::error::Error>::is::<io::Error>) => {
            Err(error.context("cannot write to standard output"))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

/// Prints a short text.
///
/// # Errors
/// Standard output cannot be written.
fn print_stdout(text: &str) -> io::Result<()> {
    Stdout::open()?.write_all(text.as_bytes())
}

/// Prints the help that clap has made, in the characters of the locale.
///
/// # Errors
/// The stream cannot be written.
pub fn print_help(help: &clap::Error) -> io::Result<()> {
    let text = help.render();
    let is_terminal = if help.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let text = if supports_colors(is_terminal) { text.ansi().to_string() } else { text.to_string() };
    let text = Symbols::of_locale().convert(&text);
    if help.use_stderr() {
        write_stderr(text.as_bytes());
        Ok(())
    } else {
        print_stdout(&text)
    }
}

/// Standard output. A write waits for the reader even if another process has made the stream
/// non-blocking. A Windows console takes UTF-16.
struct Stdout {
    file: File,
    is_terminal: bool,
}

impl Stdout {
    fn open() -> io::Result<Self> {
        let file = std_file(StdStream::Output)?;
        Ok(Self { is_terminal: file.is_terminal(), file })
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal || !write_console(&self.file, bytes)? {
            blocking_io::write_all(&self.file, bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
