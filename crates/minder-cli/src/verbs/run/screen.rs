//! Where output goes: stdout and stderr, byte for byte, one job at a time.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use minder::Stream;
use minder::os::{Standard, standard};

use super::ready;
use crate::report::{Progress, reason};

/// How many bytes of whole jobs are gathered before they are written. A job of one line costs no call of its own then.
const GATHER_MAX: usize = 32 << 10;

/// The standard streams, without buffers.
#[derive(Debug)]
pub(super) struct Screen {
    files: Mutex<Files>,
    progress: Progress,
    /// Whether nobody reads standard output any more.
    closed: AtomicBool,
    failure: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Files {
    out: File,
    err: File,
}

impl Screen {
    pub(super) fn new(progress: Progress) -> io::Result<Self> {
        let files = Files { out: standard(Standard::Output)?, err: standard(Standard::Error)? };
        Ok(Self {
            files: Mutex::new(files),
            progress,
            closed: AtomicBool::new(false),
            failure: Mutex::new(None),
        })
    }

    /// Whether nobody reads standard output any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether output can no longer be written, for whatever reason.
    pub(super) fn is_broken(&self) -> bool {
        self.is_closed() || self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Why output can no longer be written, if it is not simply closed.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes a message while the bar is away.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.progress.aside(write)
    }

    fn write(&self, files: &mut Files, stream: Stream, bytes: &[u8]) {
        if self.is_broken() {
            return;
        }
        let file = match stream {
            Stream::Stdout => &mut files.out,
            Stream::Stderr => &mut files.err,
        };
        // The bar's lock is not held while somebody does not read from a pipe: the main thread takes signals.
        let result = if file.is_terminal() {
            self.progress.aside(|| ready::write_all(file, bytes))
        } else {
            ready::write_all(file, bytes)
        };
        match (result, stream) {
            (Ok(()), _) => (),
            // Whoever closed our stderr does not want to know.
            (Err(error), Stream::Stderr) if error.kind() == io::ErrorKind::BrokenPipe => (),
            (Err(error), Stream::Stdout) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.store(true, Ordering::SeqCst)
            }
            (Err(error), stream) => {
                let name = if stream == Stream::Stdout { "standard output" } else { "standard error" };
                let failure = format!("cannot write to {name}: {}", reason(&error));
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            }
        }
    }
}

/// One loop's output: whole jobs are gathered; a large one takes the screen until it is over.
#[derive(Debug)]
pub(super) struct Gather<'a> {
    screen: &'a Screen,
    files: Option<MutexGuard<'a, Files>>,
    bytes: Vec<u8>,
    stream: Stream,
}

impl<'a> Gather<'a> {
    pub(super) fn new(screen: &'a Screen) -> Self {
        Self { screen, files: None, bytes: Vec::new(), stream: Stream::Stdout }
    }

    /// Takes bytes of the job that is being shown.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if stream != self.stream || self.bytes.len() + bytes.len() > GATHER_MAX {
            self.write_out();
            self.stream = stream;
        }
        if bytes.len() > GATHER_MAX / 2 {
            self.write_out();
            self.write(bytes);
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The job that was shown is over: another loop may have the screen.
    pub(super) fn end_job(&mut self) {
        if self.files.is_some() {
            self.write_out();
            self.files = None;
        }
    }

    /// Writes what was gathered.
    pub(super) fn flush(&mut self) {
        self.write_out();
        self.files = None;
    }

    fn write_out(&mut self) {
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            self.write(&bytes);
            self.bytes = bytes;
            self.bytes.clear();
        }
    }

    /// Writes, and keeps the screen: the job may go on.
    fn write(&mut self, bytes: &[u8]) {
        let screen = self.screen;
        let files =
            self.files.get_or_insert_with(|| screen.files.lock().unwrap_or_else(PoisonError::into_inner));
        screen.write(files, self.stream, bytes);
    }
}
