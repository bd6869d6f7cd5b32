//! A file that grows by whole lines: what cannot be written entirely is taken back.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// Where lines go. A file, or in tests something that fails as it is told.
pub trait AppendTarget {
    /// Writes some of these bytes where the position stands.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts the file to this length and goes there.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Makes what was written survive the machine.
    fn sync(&mut self) -> io::Result<()>;
}

impl AppendTarget for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.seek(SeekFrom::Start(len)).map(|_| ())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A target with whole lines only.
#[derive(Debug)]
pub struct LineWriter<T> {
    target: T,
    /// Bytes of whole lines.
    len: u64,
    /// Part of a line may stand behind them: it could not be taken back.
    torn: bool,
    /// A pipe or a terminal: nothing can be taken back.
    stream: bool,
    sync: bool,
}

impl<T: AppendTarget> LineWriter<T> {
    /// A file whose position stands at its end, `len`, behind a whole line.
    pub fn new(target: T, len: u64, sync: bool) -> Self {
        Self { target, len, torn: false, stream: false, sync }
    }

    /// A pipe or a terminal. What was written in part is ended by a newline before the next line.
    pub fn stream(target: T) -> Self {
        Self { target, len: 0, torn: false, stream: true, sync: false }
    }

    #[cfg(test)]
    pub(crate) fn target(&self) -> &T {
        &self.target
    }

    #[cfg(test)]
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut self.target);
    }

    /// Appends these whole lines, in one write where the system takes them in one. All of them, or
    /// none and an error; the one exception is an error of the last step, which with `sync`
    /// makes them durable: then they stand in the file.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.mend()?;
        if let Err(error) = self.write_all(lines) {
            // Where this fails, too, it is tried again before the next line.
            let _ = self.take_back();
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

    fn take_back(&mut self) -> io::Result<()> {
        if self.torn && !self.stream {
            self.target.cut(self.len)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Whatever was left of an earlier failure goes, or is ended.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn && self.stream {
            self.write_all(b"\n")?;
        }
        self.take_back()
    }
}
