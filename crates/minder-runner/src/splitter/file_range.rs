//! Ranges of files. Where a file is cut is found by reading a little around each cut.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minder_os::sync::Mutex;

use crate::splitter::buffer::Bytes;
use crate::splitter::config::CHUNK_MAX;
use crate::text::os_error_text;

/// The greatest distance from a cut at which the beginning of the line is searched for.
pub(super) const LINE_MAX: u64 = 1 << 20;

/// A range of a file, after the header.
#[derive(Clone, Debug)]
pub(crate) struct FileRange {
    pub(super) file: Arc<SharedFile>,
    pub(super) header: Option<Bytes>,
    /// The offset at which the header starts.
    pub(super) header_at: u64,
    pub(super) range: Range<u64>,
}

/// One file, shared by all of its ranges.
#[derive(Debug)]
pub(super) struct SharedFile {
    pub(super) file: Mutex<File>,
    pub(super) path: PathBuf,
    /// The offset of the file in the input, which may have several files.
    pub(super) base: u64,
}

impl FileRange {
    /// Returns which bytes of the input it has.
    pub(super) fn in_input(&self) -> Range<u64> {
        self.file.base + self.range.start..self.file.base + self.range.end
    }

    /// Returns a POSIX shell command that writes the same bytes. It uses `tail`, which seeks over
    /// the bytes before the range.
    pub(crate) fn as_shell(&self) -> Option<String> {
        let path = format!("'{}'", self.file.path.to_str()?.replace('\'', r"'\''"));
        let segment = |at: u64, len: u64| format!("tail -c +{} <{path} | head -c {len}", at + 1);
        let part = segment(self.range.start, self.range.end - self.range.start);
        Some(match &self.header {
            Some(header) => format!("{{ {}; {part}; }}", segment(self.header_at, header.len() as u64)),
            None => part,
        })
    }

    /// Returns the bytes at `at`; none at the end of the range.
    pub(crate) fn read(&self, at: u64) -> Result<Bytes, String> {
        let header = self.header.as_ref().map_or(0, |header| header.len());
        if let (Some(header), Ok(at)) = (&self.header, usize::try_from(at))
            && at < header.len()
        {
            return Ok(header.slice(at, CHUNK_MAX));
        }
        let at = self.range.start + (at - header as u64);
        let len = usize::try_from(self.range.end - at).unwrap_or(usize::MAX).min(CHUNK_MAX);
        let mut bytes = vec![0; len];
        let count = self.file.read_at(at, &mut bytes)?;
        if count == 0 && len > 0 {
            return Err(format!("`{}` became shorter while it was read", self.file.path.display()));
        }
        bytes.truncate(count);
        Ok(Bytes::from(bytes))
    }
}

impl SharedFile {
    /// Fills the buffer as far as the file goes.
    pub(super) fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<usize, String> {
        let mut file = self.file.lock();
        let mut read = || {
            file.seek(SeekFrom::Start(at))?;
            let mut filled = 0;
            while filled < buffer.len() {
                match file.read(&mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(filled)
        };
        read().map_err(|error| unreadable(&self.path, &error))
    }

    /// Reads more bytes after the known ones: as many again, and at least a few. Returns `false` at
    /// the end of the file.
    pub(super) fn extend(&self, known: &mut Vec<u8>, base: u64) -> Result<bool, String> {
        let len = known.len();
        let more = len.max(CHUNK_MAX);
        known.resize(len + more, 0);
        let count = self.read_at(base + len as u64, &mut known[len..])?;
        known.truncate(len + count);
        Ok(count > 0)
    }
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read `{}`: {}", path.display(), os_error_text(error))
}
