//! The finished jobs of one worker thread, gathered so that many small jobs cost few system calls.
//!
//! Their output is saved in the worker thread's file, and their events are in the journal, before
//! any of the output is written.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::output::gathered::GatheredOutput;
use crate::output::store::{AppendFile, FinishedJob, HeldMemory, JobFile, Location};
use crate::read_range::read_range;

/// A batch with this many bytes is written at once. A job with one line of output then costs no
/// system call.
const FULL: usize = 32 << 10;

/// The finished jobs of one worker thread whose output is not written or saved yet.
#[derive(Debug)]
pub(crate) struct OutputBatch {
    /// The output of the jobs that is in memory.
    bytes: Vec<u8>,
    jobs: Vec<FinishedJob>,
    store: AppendFile,
    /// The memory for output that waits without a file, as long as there is room.
    memory: HeldMemory,
    /// The worker thread's file and the offset of `bytes` in it, once they are saved.
    saved: Option<(Arc<File>, u64)>,
    sync: bool,
}

impl OutputBatch {
    /// Creates a batch without jobs. `memory` has room only if the run has no record: recorded
    /// output is in files before it is written.
    pub(crate) fn new(store: AppendFile, memory: HeldMemory, sync: bool) -> Self {
        Self { bytes: Vec::new(), jobs: Vec::new(), store, memory, saved: None, sync }
    }

    /// Adds a finished job, which has no segments yet, with its output.
    pub(crate) fn push(&mut self, output: &mut GatheredOutput, mut finished: FinishedJob) {
        let (bytes, mut segments) = output.take();
        let start = self.bytes.len();
        if start == 0 && bytes.len() >= FULL {
            self.bytes = bytes;
        } else {
            self.bytes.extend_from_slice(&bytes);
            for segment in &mut segments {
                if let Location::Batch(range) = &mut segment.location {
                    *range = start + range.start..start + range.end;
                }
            }
        }
        finished.segments = segments;
        self.jobs.push(finished);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns `true` if the batch should be committed: it has many bytes, or as many jobs as run
    /// at once. After a kill, at most these jobs are written twice.
    pub(crate) fn is_full(&self, jobs: usize) -> bool {
        self.bytes.len() >= FULL || self.jobs.len() >= jobs
    }

    /// Returns the name of the worker thread's file and the offset at which a range of the next job's
    /// output will be saved, or `None` if the file has no name.
    pub(crate) fn place_of_next(&self, range: &Range<usize>) -> Option<(&str, u64)> {
        Some((self.store.name()?, self.store.len() + (self.bytes.len() + range.start) as u64))
    }

    /// Appends the bytes to the worker thread's file.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        if self.sync {
            self.sync_files()?;
        }
        if self.saved.is_none() && !self.bytes.is_empty() {
            let base = self.store.len();
            let file = Arc::clone(self.store.append(&self.bytes, self.sync)?);
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
        &self.bytes
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
                Location::Held(_) | Location::Shared(..) | Location::Named(..) => (),
            }
        }
        Ok(())
    }

    /// Copies a part of a nameless file to the end of the worker thread's file.
    fn copy_to_store(&mut self, file: &File, range: Range<u64>) -> io::Result<(Arc<File>, Range<u64>)> {
        let base = self.store.len();
        read_range(file, range, |bytes| self.store.append(bytes, false).map(drop))?;
        let store = Arc::clone(self.store.append(&[], false)?);
        Ok((store, base..self.store.len()))
    }

    /// Removes the bytes of the finished jobs, which were written or saved elsewhere.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.saved = None;
    }

    /// Returns the worker thread's file.
    pub(crate) fn store(&mut self) -> &mut AppendFile {
        &mut self.store
    }
}
