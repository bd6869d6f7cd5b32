//! The output of one job that is kept until the job ends.

use std::io;
use std::ops::Range;

use minder::{Charge, Stream};
use minder_os::files::{open_no_follow, write_all_at};

use crate::output::store::{JobFile, Location, Segment};
use crate::read_range::read_range;

/// The output of one job, in the order in which it was written. Files that are still in it when it is
/// dropped are removed.
#[derive(Debug, Default)]
pub(crate) struct GatheredOutput {
    bytes: Vec<u8>,
    /// Ranges of [`Location::Batch`] are ranges of `bytes`.
    segments: Vec<Segment>,
}

impl GatheredOutput {
    /// Adds bytes.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        match self.segments.last_mut() {
            Some(Segment { stream: last, location: Location::Batch(range) })
                if *last == stream && range.end == start =>
            {
                range.end = end;
            }
            _ => self.segments.push(Segment { stream, location: Location::Batch(start..end) }),
        }
    }

    /// Adds a file.
    pub(crate) fn push_file(&mut self, stream: Stream, job_file: JobFile) {
        self.segments.push(Segment { stream, location: Location::Own(job_file) });
    }

    /// Adds what another process has saved.
    pub(crate) fn push_saved(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Returns the bytes and the segments, and leaves nothing.
    pub(crate) fn take(&mut self) -> (Vec<u8>, Vec<Segment>) {
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.segments))
    }

    /// Returns the segments.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the bytes of a range.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Returns how many bytes there are in all.
    pub(crate) fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.location.len()).sum()
    }

    /// Returns how many bytes are in memory.
    pub(crate) fn in_memory(&self) -> usize {
        self.bytes.len()
    }

    /// Returns how many files are open.
    pub(crate) fn open_files(&self) -> usize {
        let is_open =
            |segment: &&Segment| matches!(&segment.location, Location::Own(JobFile { file: Some(_), .. }));
        self.segments.iter().filter(is_open).count()
    }

    /// Passes one stream to `take`, chunk by chunk.
    ///
    /// # Errors
    /// A file cannot be read or is too short, or `take` fails.
    pub(crate) fn for_each_chunk(
        &self,
        stream: Stream,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for segment in self.segments.iter().filter(|segment| segment.stream == stream) {
            match &segment.location {
                Location::Batch(range) => take(&self.bytes[range.clone()])?,
                Location::Own(job_file) => {
                    read_range(&job_file.open()?, job_file.range.clone(), &mut *take)?;
                }
                Location::Shared(file, range) => read_range(file, range.clone(), &mut *take)?,
                Location::Named(path, range) => {
                    read_range(&open_no_follow(path)?, range.clone(), &mut *take)?;
                }
                // Only output of a batch is there.
                Location::Held(_) => (),
            }
        }
        Ok(())
    }

    /// Closes the files that have a name, so that a job that only waits keeps no descriptor.
    pub(crate) fn close_named_files(&mut self) {
        for segment in &mut self.segments {
            match &mut segment.location {
                Location::Own(job_file) if job_file.path.is_some() => job_file.file = None,
                _ => (),
            }
        }
    }

    /// Opens the files again that [`close_named_files`](Self::close_named_files) closed. If that fails, the
    /// error is reported when the file is read.
    pub(crate) fn reopen_files(&mut self) {
        for segment in &mut self.segments {
            match &mut segment.location {
                Location::Own(job_file) if job_file.file.is_none() => job_file.file = job_file.open().ok(),
                _ => (),
            }
        }
    }

    /// Moves what is in memory to the end of `job_file`, which only this job has.
    pub(crate) fn move_to(&mut self, job_file: JobFile) -> io::Result<()> {
        let Some(file) = &job_file.file else { return Ok(()) };
        let mut end = 0;
        for segment in &mut self.segments {
            if let Location::Batch(range) = &segment.location {
                let bytes = &self.bytes[range.clone()];
                write_all_at(file, bytes, end)?;
                let range = end..end + bytes.len() as u64;
                end = range.end;
                let file = Some(file.try_clone()?);
                let path = job_file.path.clone();
                segment.location = Location::Own(JobFile { file, path, range, charge: Charge::default() });
            }
        }
        self.bytes.clear();
        Ok(())
    }

    /// Drops the output and removes its files.
    pub(crate) fn discard(&mut self) {
        self.bytes.clear();
        for segment in self.segments.drain(..) {
            if let Location::Own(job_file) = segment.location {
                job_file.remove();
            }
        }
    }
}

impl Drop for GatheredOutput {
    fn drop(&mut self) {
        if !self.segments.is_empty() {
            self.discard();
        }
    }
}
