//! Output that stays in the record after it was shown (`--keep-output`).
//!
//! An attempt has one file for it, which only grows. A job gathers some of its output in memory and
//! appends that as a whole, so its parts stand between those of other jobs. The event of the job names
//! its parts. Bytes of a job without an event are never read.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minder::Stream;
use minder_os::files::{create_private_file, write_all_at};
use minder_os::sync::Mutex;
use minder_record::event::OutputSegment;
use minder_record::writer::STORED_MAX;

use crate::read_range::read_range;

/// A job appends its output to the file from this size on.
const APPENDED_FROM: usize = 64 << 10;

/// The file of an attempt. All worker threads share it.
#[derive(Debug)]
pub(crate) struct StoredFile {
    dir: PathBuf,
    name: String,
    sync: bool,
    /// Locked for each append: the file and its length, once it has bytes.
    state: Mutex<(Option<File>, u64)>,
}

impl StoredFile {
    /// Creates a store. The file itself is created when it is needed.
    pub(crate) fn new(dir: &Path, name: String, sync: bool) -> Self {
        Self { dir: dir.to_owned(), name, sync, state: Mutex::new((None, 0)) }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends bytes, as far as there is room. Returns where they are.
    fn append(&self, bytes: &[u8]) -> io::Result<Range<u64>> {
        let (file, len) = &mut *self.state.lock();
        let room = usize::try_from(STORED_MAX.saturating_sub(*len)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        let start = *len;
        if !bytes.is_empty() {
            let file = match file {
                Some(file) => file,
                None => {
                    let created = create_private_file(&self.dir.join(&self.name))?;
                    if self.sync {
                        // Some systems do not open directories, and do not need this.
                        File::open(&self.dir).map_or(Ok(()), |dir| dir.sync_all())?;
                    }
                    file.insert(created)
                }
            };
            write_all_at(file, bytes, start)?;
            if self.sync {
                file.sync_data()?;
            }
            *len += bytes.len() as u64;
        }
        Ok(start..*len)
    }
}

/// The copy of the output of one job, by `Stream as usize`.
#[derive(Debug)]
pub(crate) struct OutputCopy {
    file: Arc<StoredFile>,
    /// Bytes that are not in the file yet.
    waiting: [Vec<u8>; 2],
    passed: [u64; 2],
    segments: Vec<OutputSegment>,
    /// The first error, which ends the run with the job.
    error: Option<io::Error>,
}

impl OutputCopy {
    pub(crate) fn new(file: Arc<StoredFile>) -> Self {
        Self { file, waiting: Default::default(), passed: [0; 2], segments: Vec::new(), error: None }
    }

    /// Returns how many bytes of a stream were added.
    pub(crate) fn passed(&self, stream: Stream) -> u64 {
        self.passed[stream as usize]
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.passed[stream as usize] += bytes.len() as u64;
        self.waiting[stream as usize].extend_from_slice(bytes);
        if self.waiting[stream as usize].len() >= APPENDED_FROM {
            self.append(stream);
        }
    }

    /// Adds a part of a file.
    pub(crate) fn push_file(&mut self, stream: Stream, file: &File, range: Range<u64>) {
        let read = read_range(file, range, |bytes| {
            self.push(stream, bytes);
            Ok(())
        });
        if let Err(error) = read {
            self.error.get_or_insert(error);
        }
    }

    fn append(&mut self, stream: Stream) {
        let bytes = &mut self.waiting[stream as usize];
        match self.file.append(bytes) {
            Err(error) => _ = self.error.get_or_insert(error),
            Ok(range) if range.is_empty() => (),
            Ok(Range { start: at, end }) => {
                let stream = stream as u8 + 1;
                self.segments.push(OutputSegment { stream, file: self.file.name.clone(), at, len: end - at });
            }
        }
        bytes.clear();
    }

    /// Appends the rest to the file.
    ///
    /// # Errors
    /// Some of the output could not be read or written: the directory of the file, and the reason.
    pub(crate) fn finish(&mut self) -> Result<(), (PathBuf, io::Error)> {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !self.waiting[stream as usize].is_empty() {
                self.append(stream);
            }
        }
        self.error.take().map_or(Ok(()), |error| Err((self.file.dir().to_owned(), error)))
    }

    /// Returns where the output is, once all of it is in the file.
    pub(crate) fn take_segments(&mut self) -> Vec<OutputSegment> {
        std::mem::take(&mut self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_two_jobs_share_a_file() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let file = Arc::new(StoredFile::new(dir.path(), "stored-1".to_owned(), false));
        let [mut one, mut other] = [(); 2].map(|()| OutputCopy::new(Arc::clone(&file)));
        assert!(!dir.path().join("stored-1").exists());
        one.push(Stream::Stdout, b"one");
        other.push(Stream::Stderr, &[b'x'; APPENDED_FROM]);
        other.push(Stream::Stdout, b"other");
        one.push(Stream::Stdout, b" end");
        one.finish().expect("write to temp dir");
        other.finish().expect("write to temp dir");
        let large = APPENDED_FROM as u64;
        let places = |copy: &mut OutputCopy| -> Vec<_> {
            copy.take_segments().iter().map(|segment| (segment.stream, segment.at, segment.len)).collect()
        };
        assert_eq!(places(&mut one), [(1, large, 7)]);
        assert_eq!(places(&mut other), [(2, 0, large), (1, large + 7, 5)]);
        let text = std::fs::read(dir.path().join("stored-1")).expect("read file");
        assert_eq!(&text[APPENDED_FROM..], b"one endother");
    }
}
