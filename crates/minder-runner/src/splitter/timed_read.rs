//! Reading input, and not for longer than asked.

use std::fs::File;
use std::io;
use std::time::Instant;

use minder::{Events, Interest, Poller, Token};

use crate::blocking_io;

/// What input is read from.
pub(crate) trait TimedRead {
    /// Reads; 0 at the end. `None` when nothing came until `deadline`.
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>>;
}

/// A file, a pipe, a terminal.
#[derive(Debug)]
pub(crate) struct FileFeed {
    file: File,
    watch: Watch,
}

#[derive(Debug)]
enum Watch {
    Unknown,
    With(Box<Poller>),
    /// A plain file never lets wait, and cannot be watched.
    Needless,
}

impl FileFeed {
    pub(crate) fn new(file: File) -> Self {
        Self { file, watch: Watch::Unknown }
    }

    /// Whether a read would not block; waits for that.
    fn is_ready(&mut self, deadline: Instant) -> io::Result<bool> {
        if matches!(self.watch, Watch::Unknown) {
            let poller = Poller::new()?;
            self.watch = match poller.add(&self.file, Token(0), Interest::READABLE) {
                Ok(()) => Watch::With(Box::new(poller)),
                Err(_) => Watch::Needless,
            };
        }
        let Watch::With(poller) = &self.watch else { return Ok(true) };
        Ok(poller.wait(&mut Events::new(), Some(deadline))? > 0)
    }
}

impl TimedRead for FileFeed {
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>> {
        match deadline {
            Some(deadline) if !self.is_ready(deadline)? => Ok(None),
            _ => blocking_io::read(&mut self.file, buffer).map(Some),
        }
    }
}

impl Drop for FileFeed {
    fn drop(&mut self) {
        if let Watch::With(poller) = &self.watch {
            let _ = poller.delete(&self.file);
        }
    }
}
