//! Data for programs and people, on standard output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, LineWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use minder_os::stdio::{StdStream, std_file, std_was_closed};
use minder_os::terminal::write_console;

use crate::exit;
use crate::ui::symbols::Symbols;

/// Fails if standard output was closed before this process started. Rust's runtime has opened the null
/// device in its place, which would discard everything.
///
/// # Errors
/// It was closed.
pub(crate) fn check_stdout() -> Result<()> {
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
pub(crate) fn with_stdout(print: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<ExitCode> {
    check_stdout()?;
    let file = std_file(StdStream::Output)?;
    // A terminal gets whole lines, so that no multi-byte character is split.
    let mut out: Box<dyn Write> = if file.is_terminal() {
        Box::new(LineWriter::new(Terminal(file)))
    } else {
        Box::new(BufWriter::new(file))
    };
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

/// Prints the help that clap has made, in the characters of the locale.
///
/// # Errors
/// The stream cannot be written.
pub(crate) fn print_help(help: &clap::Error) -> io::Result<()> {
    match Symbols::of_locale() {
        Symbols::Unicode => help.print(),
        // clap adds no styles to what is not printed by itself.
        symbols => {
            let text = help.render().to_string();
            let text = symbols.convert(&text);
            if help.use_stderr() {
                io::stderr().write_all(text.as_bytes())
            } else {
                io::stdout().write_all(text.as_bytes())
            }
        }
    }
}

/// A terminal. A Windows console takes UTF-16.
struct Terminal(File);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match write_console(&self.0, bytes) {
            Ok(false) => self.0.write(bytes),
            written => written.map(|_| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
