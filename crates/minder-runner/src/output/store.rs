//! The output of a finished job while it waits to be written: in the batch of a worker thread, in
//! that thread's file, or in files of the job.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minder::{Charge, SpillFile, Stream};
use minder_os::files::{create_private_file, create_unnamed_file, open_no_follow, write_all_at};
use minder_os::limits::is_out_of_descriptors;
use minder_record::event::OutputSegment;

use crate::config::OutputTime;
use crate::output::decorate::LineStyle;
use crate::report::JobEnd;

/// A finished job whose output is not written yet.
#[derive(Debug, Default)]
pub(crate) struct FinishedJob {
    pub(crate) job: u64,
    /// The decoration of its lines.
    pub(crate) style: Option<LineStyle>,
    /// Its output, in the order in which it is written.
    pub(crate) segments: Vec<Segment>,
    /// The time at which it is written.
    pub(crate) time: OutputTime,
    /// The report on the job for the observer, if it wants one.
    pub(crate) end: Option<Box<JobEnd>>,
    /// `true` if its journal event refers to saved output, so that another event must state when that
    /// was written.
    pub(crate) needs_shown_event: bool,
    /// `true` if an earlier attempt saved the output: if it cannot be read, only this job is
    /// affected.
    pub(crate) from_earlier_attempt: bool,
}

impl FinishedJob {
    /// Returns a job without output.
    pub(crate) fn new(job: u64) -> Self {
        Self { job, ..Self::default() }
    }

    /// Returns how many bytes of output it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.location.len()).sum()
    }

    /// Returns `true` if output is written after the last job.
    pub(crate) fn is_shown_last(&self) -> bool {
        self.time.is_final() && !self.segments.is_empty()
    }
}

/// A part of a job's output.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) stream: Stream,
    pub(crate) location: Location,
}

impl Segment {
    /// Returns a part of the output that another process has saved in `dir`. No file is opened.
    ///
    /// # Errors
    /// The journal names a place where minder saves nothing.
    pub(crate) fn saved(segment: &OutputSegment, dir: &Path) -> io::Result<Self> {
        let (path, range) = segment.place(dir)?;
        let location = if segment.is_shared() {
            Location::Named(path.into(), range)
        } else {
            Location::Own(JobFile { file: None, path: Some(path), range, charge: Charge::default() })
        };
        Ok(Self { stream: if segment.stream == 2 { Stream::Stderr } else { Stream::Stdout }, location })
    }
}

/// The place of a segment.
#[derive(Debug)]
pub(crate) enum Location {
    /// In the memory of the worker thread that ran the job, and nowhere else: a range of the bytes of the
    /// job's [`GatheredOutput`](super::gathered::GatheredOutput), and of those of the batch once it is there.
    Batch(Range<usize>),
    /// In memory, after the batch was written. Only the output of a run without a record waits
    /// there.
    Held(HeldBytes),
    /// In a file that is shared with other jobs.
    Shared(Arc<File>, Range<u64>),
    /// In a file that is shared with other jobs, and is opened when it is read: there may be many.
    Named(Arc<Path>, Range<u64>),
    /// In a file of this job, which is removed once it is written.
    Own(JobFile),
}

impl Location {
    /// Returns the number of its bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Batch(range) => range.len() as u64,
            Self::Held(held) => held.as_slice().len() as u64,
            Self::Shared(_, range) | Self::Named(_, range) => range.end - range.start,
            Self::Own(own) => own.range.end - own.range.start,
        }
    }
}

/// The memory for waiting output of one worker thread's jobs. Clones share it.
///
/// Another thread may drop the bytes, so the count is atomic. It protects no other memory, so
/// relaxed ordering is enough.
#[derive(Clone, Debug)]
pub(crate) struct HeldMemory {
    held: Arc<AtomicUsize>,
    max: usize,
}

impl HeldMemory {
    /// Memory for at most this many bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { held: Arc::default(), max }
    }

    /// Copies the bytes, if there is room for them. Only the worker thread that owns the memory may
    /// call this.
    pub(crate) fn hold(&self, bytes: &[u8]) -> Option<HeldBytes> {
        let held = self.held.load(Ordering::Relaxed);
        if held + bytes.len() > self.max {
            return None;
        }
        self.held.fetch_add(bytes.len(), Ordering::Relaxed);
        Some(HeldBytes { bytes: bytes.into(), held: Arc::clone(&self.held) })
    }
}

/// Bytes that wait in memory. Dropping them makes room for others.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    bytes: Box<[u8]>,
    held: Arc<AtomicUsize>,
}

impl HeldBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// A file with the output of one job.
#[derive(Debug)]
pub(crate) struct JobFile {
    /// `None` if it is closed and has to be opened again by its path.
    pub(crate) file: Option<File>,
    /// `None` if it has no name and disappears with its last handle.
    pub(crate) path: Option<PathBuf>,
    pub(crate) range: Range<u64>,
    /// Counts its bytes in the backlog of all files that wait.
    pub(crate) charge: Charge,
}

impl JobFile {
    /// Returns a handle, and opens the file again if it was closed.
    pub(crate) fn open(&self) -> io::Result<File> {
        match (&self.file, &self.path) {
            (Some(file), _) => file.try_clone(),
            (None, Some(path)) => open_no_follow(path),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns how many bytes its job wrote; 0 if it is closed.
    pub(crate) fn written(&self) -> io::Result<u64> {
        self.file.as_ref().map_or(Ok(0), |file| Ok(file.metadata()?.len()))
    }

    /// Removes the file.
    pub(crate) fn remove(self) {
        let Self { path, charge, .. } = self;
        // If this fails, the file is removed when the record is pruned.
        let _ = path.map(std::fs::remove_file);
        drop(charge);
    }
}

impl From<SpillFile> for JobFile {
    fn from(spilled: SpillFile) -> Self {
        let SpillFile { file, path, start, len, charge, .. } = spilled;
        Self { file: Some(file), path, range: start..start + len, charge }
    }
}

/// The named files that were read last.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    open: VecDeque<(Arc<Path>, Arc<File>)>,
    uses: u32,
}

impl NamedFiles {
    /// The most files that are open.
    const OPEN_MAX: usize = 8;
    /// The number of uses after which all are opened again: a network file system shows what another machine
    /// has appended to a file when it is opened.
    const USES_MAX: u32 = 256;

    /// Returns a file, which is opened if that was not done a moment ago.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(&mut self, path: &Arc<Path>) -> io::Result<Arc<File>> {
        self.uses += 1;
        if self.uses >= Self::USES_MAX {
            self.close();
        }
        if let Some((_, file)) = self.open.iter().find(|(known, _)| known == path) {
            return Ok(Arc::clone(file));
        }
        let file = match open_no_follow(path) {
            Err(error) if is_out_of_descriptors(&error) => {
                self.close();
                open_no_follow(path)?
            }
            file => file?,
        };
        let file = Arc::new(file);
        if self.open.len() >= Self::OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back((Arc::clone(path), Arc::clone(&file)));
        Ok(file)
    }

    /// Closes all files.
    pub(crate) fn close(&mut self) {
        self.open.clear();
        self.uses = 0;
    }
}

/// The file of one worker thread in which small outputs wait. It only grows; it is emptied when
/// nothing in it waits.
#[derive(Debug)]
pub(crate) struct AppendFile {
    dir: PathBuf,
    /// `None` for a file without a name.
    name: Option<String>,
    file: Option<Arc<File>>,
    len: u64,
}

/// A file in which nothing waits is emptied from this size on.
const EMPTY_FROM: u64 = 1 << 20;

impl AppendFile {
    /// Creates a store. The file itself is created when it is needed.
    pub(crate) fn new(dir: &Path, name: Option<String>) -> Self {
        Self { dir: dir.to_owned(), name, file: None, len: 0 }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the offset of the next byte.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends all of `bytes`, or nothing.
    pub(crate) fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<&Arc<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => Arc::new(self.create(sync)?),
        };
        let file = self.file.insert(file);
        let written =
            write_all_at(file, bytes, self.len).and_then(|()| if sync { file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            let _ = file.set_len(self.len);
            return Err(error);
        }
        self.len += bytes.len() as u64;
        Ok(file)
    }

    /// Empties the file if it has grown. The caller makes sure that nothing in it waits.
    pub(crate) fn empty(&mut self) {
        if self.len >= EMPTY_FROM && self.file.as_ref().is_some_and(|file| file.set_len(0).is_ok()) {
            self.len = 0;
        }
    }

    fn create(&self, sync: bool) -> io::Result<File> {
        let Some(name) = &self.name else { return create_unnamed_file(&self.dir) };
        let file = create_private_file(&self.dir.join(name))?;
        if sync {
            self.sync_dir()?;
        }
        Ok(file)
    }

    /// Makes the names of files in its directory durable, which fsync(2) of a file does not. Some
    /// operating systems do not open directories; there the names are durable without it, or not at
    /// all.
    pub(crate) fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir).map_or(Ok(()), |dir| dir.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use minder_os::files::read_at;

    use super::*;

    #[test]
    fn held_memory_is_limited_and_freed_by_drop() {
        let memory = HeldMemory::new(5);
        let first = memory.hold(b"abc").expect("hold three of five bytes");
        assert_eq!(first.as_slice(), b"abc");
        assert!(memory.hold(b"def").is_none());
        let second = memory.hold(b"de").expect("hold the other two bytes");
        drop(first);
        assert!(memory.hold(b"def").is_some());
        drop(second);
    }

    /// Any worker thread may read output that waits, while the owner of the file appends to it.
    #[test]
    fn concurrent_reads_do_not_disturb_appends() {
        const BYTES: &[u8] = b"four";
        let mut store = AppendFile::new(&std::env::temp_dir(), None);
        let file = Arc::clone(store.append(BYTES, false).expect("append to a new file"));
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    read_at(&file, &mut [0; 1], 0).expect("read one byte");
                }
            });
            for _ in 1..2000 {
                store.append(BYTES, false).expect("append to the file");
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut all = vec![0; 2000 * BYTES.len() + 1];
        assert_eq!(read_at(&file, &mut all, 0).expect("read the whole file"), 2000 * BYTES.len());
        assert_eq!(all[..2000 * BYTES.len()], BYTES.repeat(2000));
    }
}
