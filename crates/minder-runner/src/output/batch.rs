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
    pieces: Vec<Segment>,
    store: AppendFile,
    /// Where the bytes lie in the loop's file, if they were written to it.
    saved: Option<(Arc<File>, u64)>,
    sync: bool,
}

/// What a job wrote that is over and not in the batch.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedOutput {
    bytes: Vec<u8>,
    pieces: Vec<Segment>,
}

impl UnfinishedOutput {
    /// How many bytes it has in memory.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many files it keeps open.
    pub(crate) fn files(&self) -> usize {
        let is_open =
            |piece: &&Segment| matches!(&piece.location, Location::Own(JobFile { file: Some(_), .. }));
        self.pieces.iter().filter(is_open).count()
    }
}

impl OutputBatch {
    pub(crate) fn new(store: AppendFile, sync: bool) -> Self {
        Self { bytes: Vec::new(), start: 0, jobs: Vec::new(), pieces: Vec::new(), store, saved: None, sync }
    }

    /// Takes bytes of the job that is being gathered.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        match self.pieces.last_mut() {
            Some(Segment { stream: last, location: Location::Batch(range) })
                if *last == stream && range.end == start =>
            {
                range.end = end;
            }
            _ => self.pieces.push(Segment { stream, location: Location::Batch(start..end) }),
        }
    }

    /// Takes a file of the job that is being gathered.
    pub(crate) fn push_file(&mut self, stream: Stream, own: JobFile) {
        self.pieces.push(Segment { stream, location: Location::Own(own) });
    }

    /// The pieces of the job that is being gathered.
    pub(crate) fn pieces(&self) -> &[Segment] {
        &self.pieces
    }

    /// Hands on one output of the job that is being gathered.
    pub(crate) fn each(
        &self,
        stream: Stream,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for piece in self.pieces.iter().filter(|piece| piece.stream == stream) {
            match &piece.location {
                Location::Batch(range) => take(&self.bytes[range.clone()])?,
                Location::Own(own) => {
                    let (file, mut at) = (own.open()?, own.range.start);
                    let mut buffer = vec![0; FULL];
                    while at < own.range.end {
                        let most = usize::try_from(own.range.end - at).unwrap_or(FULL).min(FULL);
                        let read = read_at(&file, &mut buffer[..most], at)?;
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
    pub(crate) fn take_open(&mut self) -> UnfinishedOutput {
        let bytes = self.bytes.split_off(self.start);
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in &mut pieces {
            match &mut piece.location {
                Location::Batch(range) => *range = range.start - self.start..range.end - self.start,
                // A named file is opened again: no descriptor is kept for a job that only waits.
                Location::Own(own) if own.path.is_some() => own.file = None,
                _ => (),
            }
        }
        UnfinishedOutput { bytes, pieces }
    }

    /// Puts it back: that job is being gathered. No other is.
    pub(crate) fn put_open(&mut self, open: UnfinishedOutput) {
        let UnfinishedOutput { bytes, mut pieces } = open;
        for piece in &mut pieces {
            match &mut piece.location {
                Location::Batch(range) => *range = range.start + self.start..range.end + self.start,
                // What cannot be opened again is said where it is read.
                Location::Own(own) if own.file.is_none() => own.file = own.open().ok(),
                _ => (),
            }
        }
        self.bytes.truncate(self.start);
        self.bytes.extend_from_slice(&bytes);
        self.pieces = pieces;
    }

    /// How many bytes the job that is being gathered has.
    pub(crate) fn len(&self) -> u64 {
        let of = |piece: &Segment| match &piece.location {
            Location::Batch(range) => range.len() as u64,
            Location::Own(JobFile { range, .. }) | Location::Shared(_, range) => range.end - range.start,
        };
        self.pieces.iter().map(of).sum()
    }

    /// Forgets them.
    pub(crate) fn discard(&mut self) {
        self.bytes.truncate(self.start);
        for piece in self.pieces.drain(..) {
            if let Location::Own(own) = piece.location {
                own.remove();
            }
        }
    }

    /// The job is over.
    pub(crate) fn end_job(&mut self, job: u64, marks: Option<LineStyle>, owed: bool) {
        let pieces = std::mem::take(&mut self.pieces);
        self.start = self.bytes.len();
        self.jobs.push(FinishedJob {
            job,
            style: marks,
            segments: pieces,
            needs_shown_event: owed,
            from_earlier_attempt: false,
        });
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
        for piece in self.jobs.iter().flat_map(|finished| &finished.segments) {
            if let Location::Own(JobFile { file: Some(file), path, .. }) = &piece.location {
                file.sync_data()?;
                named |= path.is_some();
            }
        }
        if named { self.store.sync_folder() } else { Ok(()) }
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
        for piece in &mut finished.segments {
            match &mut piece.location {
                Location::Batch(range) => {
                    self.save()?;
                    if let Some((file, base)) = &self.saved {
                        let range = base + range.start as u64..base + range.end as u64;
                        piece.location = Location::Shared(Arc::clone(file), range);
                    }
                }
                Location::Own(own) if own.path.is_some() => own.file = None,
                Location::Own(own) => {
                    self.save()?;
                    let range = std::mem::take(&mut own.range);
                    if let Some(file) = own.file.take() {
                        let (file, range) = self.take_in(&file, range)?;
                        piece.location = Location::Shared(file, range);
                    }
                }
                Location::Shared(..) => (),
            }
        }
        Ok(())
    }

    /// Copies a part of a nameless file to the loop's file, behind what was saved.
    fn take_in(&mut self, file: &File, part: Range<u64>) -> io::Result<(Arc<File>, Range<u64>)> {
        let (base, mut at) = (self.store.len(), part.start);
        let mut buffer = vec![0; FULL];
        let mut store = Arc::clone(self.store.append(&[], false)?);
        while at < part.end {
            let most = usize::try_from(part.end - at).unwrap_or(FULL).min(FULL);
            let read = read_at(file, &mut buffer[..most], at)?;
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
