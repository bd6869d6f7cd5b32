//! Standard output, written without blocking signals.

use std::cell::RefCell;
use std::io::{self, Write};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;

use super::session::Session;
use minder_ui::symbols::Symbols;
use minder_ui::with_stdout;

/// A buffer that [`flush_to_stdout`](Self::flush_to_stdout) writes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferedStdout(Rc<RefCell<Vec<u8>>>);

/// The command ends without a message, with this exit status: its reader has closed standard output, or a
/// signal ended it while it was blocked.
#[derive(Debug)]
pub(crate) struct QuietEnd(pub(crate) ExitCode);

impl std::fmt::Display for QuietEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stdout was closed by its reader, or a signal ended the command")
    }
}

impl std::error::Error for QuietEnd {}

impl Write for BufferedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BufferedStdout {
    /// Writes the buffer to standard output in the characters of the locale, and empties it. Signals are
    /// handled while the reader is slow.
    ///
    /// # Errors
    /// [`QuietEnd`]; other errors of the write.
    pub(crate) fn flush_to_stdout(&self, session: &mut Session) -> Result<()> {
        let text = String::from_utf8(self.0.take())?;
        let text = Symbols::of_locale().convert(&text).into_owned();
        match session.run_interruptibly(move || with_stdout(|out| Ok(out.write_all(text.as_bytes())?)))? {
            Some(written) => match written? {
                code if code == ExitCode::SUCCESS => Ok(()),
                code => Err(QuietEnd(code).into()),
            },
            None => Err(QuietEnd(session.exit_code()).into()),
        }
    }
}
