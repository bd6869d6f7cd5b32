//! What a job wrote, while it waits to be shown: parts of a loop's batch, of its file, or of files
//! of their own.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minder::{Charge, SpillFile, Stream};
use minder_os::files::{create_private_file, create_unnamed_file, open_no_follow, write_all_at};

use crate::output::decorate::LineStyle;

/// A job that is over and not shown yet.
#[derive(Debug, Default)]
pub(crate) struct FinishedJob {
    pub(crate) job: u64,
    /// What stands around each of its lines.
    pub(crate) style: Option<LineStyle>,
    /// What it wrote, in the order in which it is shown.
    pub(crate) segments: Vec<Segment>,
    /// Whether the record says that its output waits, so that it has to say when it was shown.
    pub(crate) needs_shown_event: bool,
    /// Whether an earlier attempt kept it: what cannot be read of it costs this job only.
    pub(crate) from_earlier_attempt: bool,
}

/// A part of a job's output.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) stream: Stream,
    pub(crate) location: Location,
}

/// Where it is.
#[derive(Debug)]
pub(crate) enum Location {
    /// In the memory of the loop that ran the job, and nowhere else.
    Batch(Range<usize>),
    /// In a file that is shared with other jobs.
    Shared(Arc<File>, Range<u64>),
    /// In a file of its own, which is removed when it was shown.
    Own(JobFile),
}

/// A file with the output of one job.
#[derive(Debug)]
pub(crate) struct JobFile {
    /// None: it is opened again by its path.
    pub(crate) file: Option<File>,
    /// None: it goes with the last handle.
    pub(crate) path: Option<PathBuf>,
    pub(crate) range: Range<u64>,
    /// It counts in what waits in files.
    pub(crate) charge: Charge,
}

impl JobFile {
    /// The file, opened again if it was closed meanwhile.
    pub(crate) fn open(&self) -> io::Result<File> {
        match (&self.file, &self.path) {
            (Some(file), _) => file.try_clone(),
            (None, Some(path)) => open_no_follow(path),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Removes the file.
    pub(crate) fn remove(self) {
        let Self { path, charge, .. } = self;
        // A file that is left is found by whoever prunes the record.
        let _ = path.map(std::fs::remove_file);
        drop(charge);
    }
}

impl From<SpillFile> for JobFile {
    fn from(spilled: SpillFile) -> Self {
        let SpillFile { file, path, start, len, charge } = spilled;
        Self { file: Some(file), path, range: start..start + len, charge }
    }
}

/// The file of one loop, in which small outputs wait. It grows at its end; when nothing waits in
/// it, it begins anew.
#[derive(Debug)]
pub(crate) struct AppendFile {
    dir: PathBuf,
    /// Its name; without one the file has none.
    name: Option<String>,
    file: Option<Arc<File>>,
    len: u64,
}

/// From this size on a file in which nothing waits is emptied.
const EMPTY_FROM: u64 = 1 << 20;

impl AppendFile {
    /// The store will make its file when it needs one.
    pub(crate) fn new(dir: &Path, name: Option<String>) -> Self {
        Self { dir: dir.to_owned(), name, file: None, len: 0 }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where the next byte will be.
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

    /// Begins anew if the file has grown. Only for a file in which nothing waits.
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

    /// Makes the names of files in its folder survive the machine: fsync(2) of a file does not. Not
    /// every system lets a folder be opened: then they do so without.
    pub(crate) fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir).map_or(Ok(()), |dir| dir.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use minder_os::files::read_at;

    use super::*;

    /// What waits is shown by whichever loop has the screen, while the loop that owns the file goes
    /// on.
    #[test]
    fn what_is_read_meanwhile_does_not_move_what_is_appended() {
        const BYTES: &[u8] = b"four";
        let mut store = AppendFile::new(&std::env::temp_dir(), None);
        let file = Arc::clone(store.append(BYTES, false).expect("a file"));
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    read_at(&file, &mut [0; 1], 0).expect("a byte");
                }
            });
            for _ in 1..2000 {
                store.append(BYTES, false).expect("room");
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut all = vec![0; 2000 * BYTES.len() + 1];
        assert_eq!(read_at(&file, &mut all, 0).expect("all"), 2000 * BYTES.len());
        assert_eq!(all[..2000 * BYTES.len()], BYTES.repeat(2000));
    }
}
