//! Output for which there is no room in memory: a private file that is written at its end and read
//! from its start.
//!
//! An unnamed file disappears with the process. A named file remains, whatever happens to the
//! process.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::config::ChildSetOptions;
use crate::backlog::Charge;
use crate::event::SpillFile;
use crate::sys::pipe::{ReadOutcome, Reader};
use crate::{Error, Operation, Result};

/// No position of a file: the next access seeks.
const UNKNOWN_POSITION: u64 = u64::MAX;

/// The spill file of one stream.
#[derive(Debug)]
pub(super) struct SpillBuffer {
    file: File,
    path: SpillPath,
    /// The number of bytes that were read back.
    read: u64,
    /// The number of bytes that were written.
    written: u64,
    /// The file's position, so that it is moved only between reading and writing.
    position: u64,
    /// Counts the bytes that wait here in the backlog.
    charge: Charge,
}

impl SpillBuffer {
    /// Creates a file as the configuration asks for. `number` is part of its name, and is increased
    /// if the file has one.
    pub(super) fn create(config: &ChildSetOptions, number: &mut u64) -> Result<Self> {
        let dir = config.spill_dir.as_deref().map_or_else(std::env::temp_dir, Path::to_owned);
        let created = match &config.spill_prefix {
            Some(prefix) => create_named(&dir, prefix, number).map(|(file, name)| (file, Some(name))),
            None => minder_os::files::create_unnamed_file(&dir).map(|file| (file, None)),
        };
        let (file, name) = created.map_err(|error| {
            Error::new("make a spill file in", error).during(Operation::Spill).with_subject(&dir)
        })?;
        Ok(Self {
            file,
            path: SpillPath { dir, name },
            read: 0,
            written: 0,
            position: 0,
            charge: Charge::new(config.backlog.clone()),
        })
    }

    /// Hands the file over to the caller.
    pub(super) fn into_spill_file(mut self) -> SpillFile {
        let path = self.path.take();
        let len = self.len();
        SpillFile { file: self.file, path, start: self.read, len, charge: self.charge }
    }

    /// Appends all of `bytes`. After an error none of them will be read back.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.len() == 0 {
            // All bytes were read back. Starting again at 0 keeps the file as small as its content.
            self.read = 0;
            self.written = 0;
        }
        if let Err(error) = self.seek(self.written).and_then(|()| self.file.write_all(bytes)) {
            // The next write overwrites the part that was written.
            self.position = UNKNOWN_POSITION;
            let error = Error::new("spill output to a file in", error);
            return Err(error.during(Operation::Spill).with_subject(&self.path.dir));
        }
        self.written += bytes.len() as u64;
        self.position = self.written;
        self.charge.set(self.len());
        Ok(())
    }

    /// Appends the bytes that are in a pipe, without a copy through our memory. After an error no byte
    /// is lost.
    pub(super) fn splice_from(&mut self, reader: &mut Reader) -> std::io::Result<ReadOutcome> {
        let outcome = reader.store(&self.file, self.written)?;
        if let ReadOutcome::Data(count) = outcome {
            self.written += count as u64;
            self.charge.set(self.len());
        }
        Ok(outcome)
    }

    /// Moves the oldest bytes to `buffer`, as many as fit into its capacity. Returns how many; 0 if
    /// there are none.
    pub(super) fn pop(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        let room = buffer.capacity() - buffer.len();
        let max = room.min(usize::try_from(self.len()).unwrap_or(usize::MAX));
        if max == 0 {
            return Ok(0);
        }
        let read = self.seek(self.read).and_then(|()| (&self.file).take(max as u64).read_to_end(buffer));
        let error = match read {
            Ok(read) if read == max => {
                self.read += read as u64;
                self.position = self.read;
                self.charge.set(self.len());
                return Ok(read);
            }
            Ok(_) => std::io::ErrorKind::UnexpectedEof.into(),
            Err(error) => error,
        };
        self.position = UNKNOWN_POSITION;
        let error = Error::new("read spilled output from a file in", error);
        Err(error.during(Operation::Read).with_subject(&self.path.dir))
    }

    /// Returns how many bytes wait.
    pub(super) fn len(&self) -> u64 {
        self.written - self.read
    }

    fn seek(&mut self, position: u64) -> std::io::Result<()> {
        if self.position != position {
            self.file.seek(SeekFrom::Start(position))?;
            self.position = position;
        }
        Ok(())
    }
}

/// The path of a spill file. Dropping it removes the file: all of its bytes were read back, or the
/// set was dropped.
#[derive(Debug)]
struct SpillPath {
    dir: PathBuf,
    name: Option<String>,
}

impl SpillPath {
    fn take(&mut self) -> Option<PathBuf> {
        self.name.take().map(|name| self.dir.join(name))
    }
}

impl Drop for SpillPath {
    fn drop(&mut self) {
        if let Some(path) = self.take() {
            // It may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Creates a file with the next free name.
fn create_named(dir: &Path, prefix: &str, number: &mut u64) -> std::io::Result<(File, String)> {
    loop {
        let name = format!("{prefix}{number}");
        *number += 1;
        match minder_os::files::create_private_file(&dir.join(&name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => (),
            created => return created.map(|file| (file, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop_returns_bytes_in_order() -> Result<()> {
        let mut spill = SpillBuffer::create(&ChildSetOptions::default(), &mut 0)?;
        spill.push(b"abc")?;
        let mut buffer = Vec::with_capacity(2);
        assert_eq!(spill.pop(&mut buffer)?, 2);
        spill.push(b"def")?;
        let mut rest = Vec::with_capacity(10);
        assert_eq!((spill.pop(&mut rest)?, spill.len()), (4, 0));
        assert_eq!((&buffer[..], &rest[..]), (&b"ab"[..], &b"cdef"[..]));
        Ok(())
    }

    #[test]
    fn create_names_a_missing_directory() {
        let config = ChildSetOptions { spill_dir: Some("/no/such/dir".into()), ..ChildSetOptions::default() };
        let error = SpillBuffer::create(&config, &mut 0).unwrap_err();
        assert_eq!(error.operation(), Operation::Spill);
        assert!(error.to_string().starts_with("failed to make a spill file in `/no/such/dir`: "), "{error}");
    }
}
