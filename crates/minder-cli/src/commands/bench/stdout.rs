//! Standard output, written without blocking signals.

use std::cell::RefCell;
use std::io::{self, Write};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;

use super::session::BenchSession;
use crate::ui::with_stdout;

/// A buffer that [`flush_to_stdout`](Self::flush_to_stdout) writes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct BufferedStdout(Rc<RefCell<Vec<u8>>>);

/// Standard output was closed by its reader, or a signal ended the write. It holds the exit status
/// for that.
#[derive(Debug)]
pub(super) struct StdoutClosed(pub(super) ExitCode);

impl std::fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stdout was closed by its reader")
    }
}

impl std::error::Error for StdoutClosed {}

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
    /// Writes the buffer to standard output and empties it. Signals are handled while the reader is
    /// slow.
    ///
    /// # Errors
    /// [`StdoutClosed`]; other errors of the write.
    pub(super) fn flush_to_stdout(&self, session: &mut BenchSession) -> Result<()> {
        let bytes = self.0.take();
        match session.run_interruptibly(move || with_stdout(|out| Ok(out.write_all(&bytes)?)))? {
            Some(written) => match written? {
                code if code == ExitCode::SUCCESS => Ok(()),
                code => Err(StdoutClosed(code).into()),
            },
            None => Err(StdoutClosed(session.exit_code()).into()),
        }
    }
}
