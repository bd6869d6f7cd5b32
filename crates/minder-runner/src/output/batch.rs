//! The finished jobs of one worker thread, gathered so that many small jobs cost few system calls.
//!
//! Their output is saved in the worker thread's file, and their events are in the journal, before
//! any of the output is written.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use minder::{Charge, Stream};
use minder_os::files::{read_at, write_all_at};

use crate::output::store::AppendFile;
use crate::output::store::FinishedJob;
use crate::output::store::HeldMemory;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::output::store::Segment;

/// A batch with this many bytes is written at once. A job with one line of output then costs no
/// system call.
const FULL: usize = 32 << 10;

/// The finished jobs of one worker thread, and the current job: the one whose output is being
/// gathered.
#[derive(Debug)]
pub(crate) struct OutputBatch {
    bytes: Vec<u8>,
    /// Where the output of the current job begins in `bytes`.
    start: usize,
    jobs: Vec<FinishedJob>,
    /// The segments of the current job.
    segments: Vec<Segment>,
    store: AppendFile,
    /// Where output waits as long as there is room, without a file.
    memory: HeldMemory,
    /// The worker thread's file and the offset of `bytes` in it, once they are saved.
    saved: Option<(Arc<File>, u64)>,
    sync: bool,
}

/// The output of a finished job that was taken out of the batch.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedOutput {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
}

impl UnfinishedOutput {
    /// Returns how many bytes it has in memory.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns how many files it keeps open.
    pub(crate) fn open_files(&self) -> usize {
        let is_open =
            |segment: &&Segment| matches!(&segment.location, Location::Own(JobFile { file: Some(_), .. }));
        self.segments.iter().filter(is_open).count()
    }
}

impl OutputBatch {
    /// Creates a batch without jobs. `memory` has room only if the run has no record: recorded
    /// output is in files before it is written.
    pub(crate) fn new(store: AppendFile, memory: HeldMemory, sync: bool) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            jobs: Vec::new(),
            segments: Vec::new(),
            store,
            memory,
            saved: None,
            sync,
        }
    }

    /// Adds bytes to the current job.
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

    /// Adds a file to the current job.
    pub(crate) fn push_file(&mut self, stream: Stream, job_file: JobFile) {
        self.segments.push(Segment { stream, location: Location::Own(job_file) });
    }

    /// Returns the segments of the current job.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Passes one stream of the current job to `take`, chunk by chunk.
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
                    let file = job_file.open()?;
                    let mut at = job_file.range.start;
                    let mut buffer = vec![0; FULL];
                    while at < job_file.range.end {
                        let want = usize::try_from(job_file.range.end - at).unwrap_or(FULL).min(FULL);
                        let read = read_at(&file, &mut buffer[..want], at)?;
                        if read == 0 {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                        take(&buffer[..read])?;
                        at += read as u64;
                    }
                }
                Location::Held(held) => take(held.as_slice())?,
                Location::Shared(..) => (),
            }
        }
        Ok(())
    }

    /// Takes the output of the current job out of the batch.
    pub(crate) fn take_unfinished(&mut self) -> UnfinishedOutput {
        let bytes = self.bytes.split_off(self.start);
        let mut segments = std::mem::take(&mut self.segments);
        for segment in &mut segments {
            match &mut segment.location {
                Location::Batch(range) => *range = range.start - self.start..range.end - self.start,
                // A named file is opened again later: a job that only waits keeps no descriptor.
                Location::Own(job_file) if job_file.path.is_some() => job_file.file = None,
                _ => (),
            }
        }
        UnfinishedOutput { bytes, segments }
    }

    /// Makes this output that of the current job, which has none yet.
    pub(crate) fn restore_unfinished(&mut self, output: UnfinishedOutput) {
        let UnfinishedOutput { bytes, mut segments } = output;
        for segment in &mut segments {
            match &mut segment.location {
                Location::Batch(range) => *range = range.start + self.start..range.end + self.start,
                // If the file cannot be opened here, the error is reported when it is read.
                Location::Own(job_file) if job_file.file.is_none() => job_file.file = job_file.open().ok(),
                _ => (),
            }
        }
        self.bytes.truncate(self.start);
        self.bytes.extend_from_slice(&bytes);
        self.segments = segments;
    }

    /// Returns `true` if the current job has output in memory.
    pub(crate) fn has_bytes(&self) -> bool {
        self.bytes.len() > self.start
    }

    /// Returns how many bytes of output the current job has.
    pub(crate) fn len(&self) -> u64 {
        let len = |segment: &Segment| match &segment.location {
            Location::Batch(range) => range.len() as u64,
            Location::Held(held) => held.as_slice().len() as u64,
            Location::Own(JobFile { range, .. }) | Location::Shared(_, range) => range.end - range.start,
        };
        self.segments.iter().map(len).sum()
    }

    /// Drops the output of the current job and removes its files.
    pub(crate) fn discard(&mut self) {
        self.bytes.truncate(self.start);
        for segment in self.segments.drain(..) {
            if let Location::Own(job_file) = segment.location {
                job_file.remove();
            }
        }
    }

    /// Adds the current job to the finished jobs: `finished`, which has no segments yet.
    pub(crate) fn finish_job(&mut self, finished: FinishedJob) {
        let segments = std::mem::take(&mut self.segments);
        self.start = self.bytes.len();
        self.jobs.push(FinishedJob { segments, ..finished });
    }

    /// Moves the output of the current job that is in memory to the end of `job_file`, which only this job
    /// has. Other output does not have to stay in the worker thread's file for it then.
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
        self.bytes.truncate(self.start);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns `true` if the batch should be committed: it has many bytes, or as many jobs as run
    /// at once. After a kill, at most these jobs are written twice.
    pub(crate) fn is_full(&self, jobs: usize) -> bool {
        self.bytes.len() >= FULL || self.jobs.len() >= jobs
    }

    /// Returns the bytes of a range.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Returns the name of the worker thread's file and the offset at which this range will be
    /// saved, or `None` if the file has no name.
    pub(crate) fn place(&self, range: &Range<usize>) -> Option<(&str, u64)> {
        Some((self.store.name()?, self.store.len() + range.start as u64))
    }

    /// Appends the bytes to the worker thread's file.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        if self.sync {
            self.sync_files()?;
        }
        if self.saved.is_none() && self.start > 0 {
            let base = self.store.len();
            let file = Arc::clone(self.store.append(&self.bytes[..self.start], self.sync)?);
            self.saved = Some((file, base));
        }
        Ok(())
    }

    /// Syncs the jobs' own files to disk.
    fn sync_files(&self) -> io::Result<()> {
        let mut named = false;
        for segment in self.jobs.iter().flat_map(|finished| &finished.segments) {
            if let Location::Own(JobFile { file: Some(file), path, .. }) = &segment.location {
                file.sync_data()?;
                named |= path.is_some();
            }
        }
        if named { self.store.sync_dir() } else { Ok(()) }
    }

    /// Drops the finished jobs, which could not be recorded.
    pub(crate) fn forget(&mut self) {
        self.jobs.clear();
        self.clear();
    }

    /// Returns the bytes of the finished jobs.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.start]
    }

    pub(crate) fn take_jobs(&mut self) -> Vec<FinishedJob> {
        std::mem::take(&mut self.jobs)
    }

    /// Moves the output of a job that has to wait into the memory for that, or into files, none of
    /// which stays open for this job alone.
    pub(crate) fn keep(&mut self, finished: &mut FinishedJob) -> io::Result<()> {
        for segment in &mut finished.segments {
            match &mut segment.location {
                Location::Batch(range) => {
                    if let Some(held) = self.memory.hold(&self.bytes[range.clone()]) {
                        segment.location = Location::Held(held);
                        continue;
                    }
                    self.save()?;
                    if let Some((file, base)) = &self.saved {
                        let range = base + range.start as u64..base + range.end as u64;
                        segment.location = Location::Shared(Arc::clone(file), range);
                    }
                }
                Location::Own(job_file) if job_file.path.is_some() => job_file.file = None,
                Location::Own(job_file) => {
                    self.save()?;
                    let range = std::mem::take(&mut job_file.range);
                    if let Some(file) = job_file.file.take() {
                        let (file, range) = self.copy_to_store(&file, range)?;
                        segment.location = Location::Shared(file, range);
                    }
                }
                Location::Held(_) | Location::Shared(..) => (),
            }
        }
        Ok(())
    }

    /// Copies a part of a nameless file to the end of the worker thread's file.
    fn copy_to_store(&mut self, file: &File, range: Range<u64>) -> io::Result<(Arc<File>, Range<u64>)> {
        let base = self.store.len();
        let mut at = range.start;
        let mut buffer = vec![0; FULL];
        let mut store = Arc::clone(self.store.append(&[], false)?);
        while at < range.end {
            let want = usize::try_from(range.end - at).unwrap_or(FULL).min(FULL);
            let read = read_at(file, &mut buffer[..want], at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            store = Arc::clone(self.store.append(&buffer[..read], false)?);
            at += read as u64;
        }
        Ok((store, base..self.store.len()))
    }

    /// Removes the bytes of the finished jobs, which were written or saved elsewhere.
    pub(crate) fn clear(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.saved = None;
    }

    /// Returns the worker thread's file.
    pub(crate) fn store(&mut self) -> &mut AppendFile {
        &mut self.store
    }
}
