//! Output that found no room in memory: a private file, written at its end and read from its start.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The file of one stream. It is for its owner alone and has no name, so that nothing is left of it, whatever happens.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    folder: PathBuf,
    read: u64,
    written: u64,
    /// Where the file's position stands, so that it is moved only between reading and writing.
    at: u64,
}

impl Spill {
    pub(super) fn create(folder: Option<&Path>) -> Result<Self> {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        // Made with `O_EXCL` and mode 0600, and without a name from here on.
        let file = tempfile::Builder::new().prefix("minder-").tempfile_in(&folder).and_then(|file| {
            let (file, path) = file.into_parts();
            path.close().map(|()| file)
        });
        let file = file.map_err(|error| Error::new("make a spill file in", error).on(&folder))?;
        Ok(Self { file, folder, read: 0, written: 0, at: 0 })
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
            Error::new("spill output to a file in", error).on(&self.folder)
        })?;
        self.written += bytes.len() as u64;
        self.at = self.written;
        Ok(())
    }

    /// Takes the oldest bytes, as many as fit into `buffer`; 0 if there are none.
    pub(super) fn pop(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        let most = (buffer.capacity() - buffer.len()).min(usize::try_from(self.len()).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let read = self.go(self.read).and_then(|()| (&self.file).take(most as u64).read_to_end(buffer));
        let read =
            read.map_err(|error| Error::new("read spilled output from a file in", error).on(&self.folder))?;
        if read < most {
            let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(Error::new("read spilled output from a file in", error).on(&self.folder));
        }
        self.read += read as u64;
        self.at = self.read;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_in_order() -> Result<()> {
        let mut spill = Spill::create(None)?;
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
        let error = Spill::create(Some(Path::new("/no/such/folder"))).unwrap_err();
        assert!(
            error.to_string().starts_with("failed to make a spill file in `/no/such/folder`: "),
            "{error}"
        );
    }
}
