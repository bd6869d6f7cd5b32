//! A file that grows by complete lines. A write that fails is undone.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The target of a [`LineWriter`]: a file, or in tests a simulated disk.
pub trait AppendTarget {
    /// Writes some of these bytes at the current position. Returns their number.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Truncates the file to this length and moves the position there.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    /// Waits until the written bytes would survive a power failure.
    fn sync(&mut self) -> io::Result<()>;
}

impl AppendTarget for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.seek(SeekFrom::Start(len)).map(|_| ())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Appends lines to a target, so that it contains complete lines only.
#[derive(Debug)]
pub struct LineWriter<T> {
    target: T,
    /// The length of the complete lines.
    len: u64,
    /// A part of a line may follow them, which could not be truncated.
    torn: bool,
    /// The target is a pipe or a terminal, which cannot be truncated.
    stream: bool,
    sync: bool,
}

impl<T: AppendTarget> LineWriter<T> {
    /// Returns a writer for a file with `len` bytes of complete lines. The position must be at the
    /// end of the file. With `sync`, each call of [`append`](Self::append) waits for the disk.
    pub fn new(target: T, len: u64, sync: bool) -> Self {
        Self { target, len, torn: false, stream: false, sync }
    }

    /// Returns a writer for a pipe or a terminal. A newline ends a partially written line before
    /// the next one.
    pub fn stream(target: T) -> Self {
        Self { target, len: 0, torn: false, stream: true, sync: false }
    }

    /// Returns the length of the complete lines, in bytes. 0 for a pipe or a terminal.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    #[cfg(test)]
    pub(crate) fn target(&self) -> &T {
        &self.target
    }

    #[cfg(test)]
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut self.target);
    }

    /// Appends complete lines, if possible with a single `write`.
    ///
    /// # Errors
    ///
    /// If they cannot be written. Then the file contains none of them, with one exception: if only
    /// the final sync fails, it contains all of them.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.repair()?;
        if let Err(error) = self.write_all(lines) {
            // If this fails, too, the next call tries again.
            let _ = self.undo();
            return Err(error);
        }
        self.len += lines.len() as u64;
        if self.sync { self.target.sync() } else { Ok(()) }
    }

    fn write_all(&mut self, mut lines: &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            match self.target.write(lines) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    lines = &lines[count..];
                    self.torn = !lines.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn undo(&mut self) -> io::Result<()> {
        if self.torn && !self.stream {
            self.target.truncate(self.len)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Removes what an earlier failure left, or ends it with a newline.
    fn repair(&mut self) -> io::Result<()> {
        if self.torn && self.stream {
            self.write_all(b"\n")?;
        }
        self.undo()
    }
}
