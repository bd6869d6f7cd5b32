//! Reads input with a deadline.

use std::fs::File;
use std::io;
use std::time::Instant;

use minder::poll::{Events, Interest, Poller, Token};

use crate::blocking_io;

/// A source of input.
pub(crate) trait TimedRead {
    /// Reads; returns 0 at the end, and `None` if no input arrived before `deadline`.
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>>;
}

/// A file, a pipe or a terminal.
#[derive(Debug)]
pub(crate) struct FileFeed {
    file: File,
    watch: Watch,
    taken: u64,
}

#[derive(Debug)]
enum Watch {
    Unknown,
    With(Box<Poller>),
    /// A regular file never blocks, and cannot be polled.
    Needless,
}

impl FileFeed {
    pub(crate) fn new(file: File) -> Self {
        Self { file, watch: Watch::Unknown, taken: 0 }
    }

    /// Returns how many bytes were read.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Waits until a read would not block, or until the deadline. Returns `false` at the deadline.
    fn is_ready(&mut self, deadline: Instant) -> io::Result<bool> {
        if matches!(self.watch, Watch::Unknown) {
            let poller = Poller::new()?;
            self.watch = match poller.add(&self.file, Token(0), Interest::READABLE) {
                Ok(()) => Watch::With(Box::new(poller)),
                Err(_) => Watch::Needless,
            };
        }
        let Watch::With(poller) = &self.watch else { return Ok(true) };
        Ok(poller.wait_deadline(&mut Events::new(), Some(deadline))? > 0)
    }
}

impl TimedRead for FileFeed {
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>> {
        match deadline {
            Some(deadline) if !self.is_ready(deadline)? => Ok(None),
            _ => {
                let count = blocking_io::read(&mut self.file, buffer)?;
                self.taken += count as u64;
                Ok(Some(count))
            }
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
