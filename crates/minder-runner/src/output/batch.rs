//! One loop's jobs that just ended: gathered, so that many small ones cost few calls.
//!
//! What they wrote is safe in the loop's file, and their rows are in the record, before any of it
//! is shown.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use minder::Stream;
use minder_os::files::read_at;

use crate::output::decorate::LineStyle;
use crate::output::store::AppendFile;
use crate::output::store::FinishedJob;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::output::store::Segment;

/// How many bytes are gathered before they are written. A job of one line costs no call of its own
/// then.
const FULL: usize = 32 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct OutputBatch {
    bytes: Vec<u8>,
    /// Where the job that is being gathered begins in `bytes`.
    start: usize,
    jobs: Vec<FinishedJob>,
    /// Pieces of the job that is being gathered.
    segments: Vec<Segment>,
    store: AppendFile,
    /// Where the bytes lie in the loop's file, if they were written to it.
    saved: Option<(Arc<File>, u64)>,
    sync: bool,
}

/// What a job wrote that is over and not in the batch.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedOutput {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
}

impl UnfinishedOutput {
    /// How many bytes it has in memory.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many files it keeps open.
    pub(crate) fn open_files(&self) -> usize {
        let is_open =
            |segment: &&Segment| matches!(&segment.location, Location::Own(JobFile { file: Some(_), .. }));
        self.segments.iter().filter(is_open).count()
    }
}

impl OutputBatch {
    pub(crate) fn new(store: AppendFile, sync: bool) -> Self {
        Self { bytes: Vec::new(), start: 0, jobs: Vec::new(), segments: Vec::new(), store, saved: None, sync }
    }

    /// Takes bytes of the job that is being gathered.
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

    /// Takes a file of the job that is being gathered.
    pub(crate) fn push_file(&mut self, stream: Stream, job_file: JobFile) {
        self.segments.push(Segment { stream, location: Location::Own(job_file) });
    }

    /// The pieces of the job that is being gathered.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Hands on one output of the job that is being gathered.
    pub(crate) fn each(
        &self,
        stream: Stream,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for segment in self.segments.iter().filter(|segment| segment.stream == stream) {
            match &segment.location {
                Location::Batch(range) => take(&self.bytes[range.clone()])?,
                Location::Own(job_file) => {
                    let (file, mut at) = (job_file.open()?, job_file.range.start);
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
                Location::Shared(..) => (),
            }
        }
        Ok(())
    }

    /// Takes out what the job that is being gathered wrote.
    pub(crate) fn take_unfinished(&mut self) -> UnfinishedOutput {
        let bytes = self.bytes.split_off(self.start);
        let mut segments = std::mem::take(&mut self.segments);
        for segment in &mut segments {
            match &mut segment.location {
                Location::Batch(range) => *range = range.start - self.start..range.end - self.start,
                // A named file is opened again: no descriptor is kept for a job that only waits.
                Location::Own(job_file) if job_file.path.is_some() => job_file.file = None,
                _ => (),
            }
        }
        UnfinishedOutput { bytes, segments }
    }

    /// Puts it back: that job is being gathered. No other is.
    pub(crate) fn restore_unfinished(&mut self, output: UnfinishedOutput) {
        let UnfinishedOutput { bytes, mut segments } = output;
        for segment in &mut segments {
            match &mut segment.location {
                Location::Batch(range) => *range = range.start + self.start..range.end + self.start,
                // What cannot be opened again is said where it is read.
                Location::Own(job_file) if job_file.file.is_none() => job_file.file = job_file.open().ok(),
                _ => (),
            }
        }
        self.bytes.truncate(self.start);
        self.bytes.extend_from_slice(&bytes);
        self.segments = segments;
    }

    /// How many bytes the job that is being gathered has.
    pub(crate) fn len(&self) -> u64 {
        let of = |segment: &Segment| match &segment.location {
            Location::Batch(range) => range.len() as u64,
            Location::Own(JobFile { range, .. }) | Location::Shared(_, range) => range.end - range.start,
        };
        self.segments.iter().map(of).sum()
    }

    /// Forgets them.
    pub(crate) fn discard(&mut self) {
        self.bytes.truncate(self.start);
        for segment in self.segments.drain(..) {
            if let Location::Own(job_file) = segment.location {
                job_file.remove();
            }
        }
    }

    /// The job is over.
    pub(crate) fn finish_job(&mut self, job: u64, style: Option<LineStyle>, needs_shown_event: bool) {
        let segments = std::mem::take(&mut self.segments);
        self.start = self.bytes.len();
        self.jobs.push(FinishedJob { job, style, segments, needs_shown_event, from_earlier_attempt: false });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether it is time to write it out: many bytes, or as many jobs as run at once, so that no
    /// more than these are ever seen twice.
    pub(crate) fn is_full(&self, jobs: usize) -> bool {
        self.bytes.len() >= FULL || self.jobs.len() >= jobs
    }

    /// The bytes of a range.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// The name of the loop's file and the place in it where bytes of this range are to be.
    pub(crate) fn place(&self, range: &Range<usize>) -> Option<(&str, u64)> {
        Some((self.store.name()?, self.store.len() + range.start as u64))
    }

    /// Writes the bytes to the loop's file.
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

    /// Waits for the disk, for what lies in files of the jobs' own.
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

    /// Forgets the jobs that are over: they could not be recorded.
    pub(crate) fn forget(&mut self) {
        self.jobs.clear();
        self.clear();
    }

    /// The bytes of the jobs that are over.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.start]
    }

    pub(crate) fn take_jobs(&mut self) -> Vec<FinishedJob> {
        std::mem::take(&mut self.jobs)
    }

    /// Puts what a job wrote where it can wait: in files, of which none is open for it alone.
    pub(crate) fn keep(&mut self, finished: &mut FinishedJob) -> io::Result<()> {
        for segment in &mut finished.segments {
            match &mut segment.location {
                Location::Batch(range) => {
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
                Location::Shared(..) => (),
            }
        }
        Ok(())
    }

    /// Copies a part of a nameless file to the loop's file, behind what was saved.
    fn copy_to_store(&mut self, file: &File, range: Range<u64>) -> io::Result<(Arc<File>, Range<u64>)> {
        let (base, mut at) = (self.store.len(), range.start);
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

    /// What was gathered is on the screen or waits elsewhere.
    pub(crate) fn clear(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.saved = None;
    }

    /// The loop's file.
    pub(crate) fn store(&mut self) -> &mut AppendFile {
        &mut self.store
    }
}
