//! Output that found no room in memory: a private file, written at its end and read from its start.
//!
//! It has no name, so that nothing is left of it, whatever happens; or it has one, so that all of
//! it is left.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::ChildSetConfig;
use crate::backlog::Charge;
use crate::event::SpillFile;
use crate::sys::pipe::{ReadOutcome, Reader};
use crate::{Error, Result};

/// The file of one stream, for its owner alone.
#[derive(Debug)]
pub(super) struct SpillBuffer {
    file: File,
    /// The name that it has until it is handed over; dropping removes it.
    name: Name,
    read: u64,
    written: u64,
    /// Where the file's position stands, so that it is moved only between reading and writing.
    at: u64,
    /// What waits in it.
    charge: Charge,
}

impl SpillBuffer {
    /// Makes a file as the limits say. `number` is used up if it is given a name.
    pub(super) fn create(limits: &ChildSetConfig, number: &mut u64) -> Result<Self> {
        let folder = limits.spill_dir.as_deref().map_or_else(std::env::temp_dir, Path::to_owned);
        let made = match &limits.spill_prefix {
            Some(names) => named(&folder, names, number).map(|(file, name)| (file, Some(name))),
            None => minder_os::files::create_unnamed_file(&folder).map(|file| (file, None)),
        };
        let (file, name) =
            made.map_err(|error| Error::new("make a spill file in", error).with_subject(&folder))?;
        Ok(Self {
            file,
            name: Name { folder, name },
            read: 0,
            written: 0,
            at: 0,
            charge: Charge::new(limits.backlog.clone()),
        })
    }

    /// Hands the file over.
    pub(super) fn into_spilled(mut self) -> SpillFile {
        let path = self.name.take();
        SpillFile {
            file: self.file,
            path,
            start: self.read,
            len: self.written - self.read,
            charge: self.charge,
        }
    }

    /// Appends all of `bytes`, or nothing that will be read.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.len() == 0 {
            // All of it was taken back: begin anew, so that the file grows no larger than what waits in it.
            (self.read, self.written) = (0, 0);
        }
        self.go(self.written).and_then(|()| self.file.write_all(bytes)).map_err(|error| {
            // What was written of it is written over by the next try.
            self.at = u64::MAX;
            Error::new("spill output to a file in", error).with_subject(&self.name.folder)
        })?;
        self.written += bytes.len() as u64;
        self.at = self.written;
        self.charge.set(self.len());
        Ok(())
    }

    /// Appends what is in a pipe, without a copy through our memory. An error loses nothing.
    pub(super) fn store(&mut self, reader: &mut Reader) -> std::io::Result<ReadOutcome> {
        let progress = reader.store(&self.file, self.written)?;
        if let ReadOutcome::Data(count) = progress {
            self.written += count as u64;
            self.charge.set(self.len());
        }
        Ok(progress)
    }

    /// Takes the oldest bytes, as many as fit into `buffer`; 0 if there are none.
    pub(super) fn pop(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        let most = (buffer.capacity() - buffer.len()).min(usize::try_from(self.len()).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let read = self.go(self.read).and_then(|()| (&self.file).take(most as u64).read_to_end(buffer));
        let read = read.map_err(|error| {
            self.at = u64::MAX;
            Error::new("read spilled output from a file in", error).with_subject(&self.name.folder)
        })?;
        if read < most {
            self.at = u64::MAX;
            let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(
                Error::new("read spilled output from a file in", error).with_subject(&self.name.folder)
            );
        }
        self.read += read as u64;
        self.at = self.read;
        self.charge.set(self.len());
        Ok(read)
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> u64 {
        self.written - self.read
    }

    fn go(&mut self, to: u64) -> std::io::Result<()> {
        if self.at != to {
            self.file.seek(SeekFrom::Start(to))?;
            self.at = to;
        }
        Ok(())
    }
}

/// The name of a file, which is removed with this: all of the file was taken back, or its set is
/// given up.
#[derive(Debug)]
struct Name {
    folder: PathBuf,
    name: Option<String>,
}

impl Name {
    fn take(&mut self) -> Option<PathBuf> {
        self.name.take().map(|name| self.folder.join(name))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if let Some(path) = self.take() {
            // It may be gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A file with the next name that is free.
fn named(folder: &Path, names: &str, number: &mut u64) -> std::io::Result<(File, String)> {
    loop {
        let name = format!("{names}{number}");
        *number += 1;
        match minder_os::files::create_private_file(&folder.join(&name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => (),
            made => return made.map(|file| (file, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_in_order() -> Result<()> {
        let mut spill = SpillBuffer::create(&ChildSetConfig::default(), &mut 0)?;
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
    fn a_folder_that_is_not_there_is_named() {
        let limits =
            ChildSetConfig { spill_dir: Some("/no/such/folder".into()), ..ChildSetConfig::default() };
        let error = SpillBuffer::create(&limits, &mut 0).unwrap_err();
        assert!(
            error.to_string().starts_with("failed to make a spill file in `/no/such/folder`: "),
            "{error}"
        );
    }
}
