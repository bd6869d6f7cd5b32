//! Writes the record of a run. An event is in the file when the call that appends it returns.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder_os::files::create_private_file;
use minder_os::sync::Mutex;

use crate::agents::{AgentKey, HOLDERS, JOURNAL};
use crate::append_file::LineWriter;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::event::{AttemptStarted, JournalEvent, OutputSegment};
use crate::manifest::{self, InputSource, Manifest};
use crate::store::{self, FileKind};
use crate::{codec, reader, run_number};

/// The time for which [`RunLock::acquire`] waits for a run that another process works on.
const LOCK_TIMEOUT: Duration = Duration::from_millis(1500);
/// The time between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// One attempt at a run. The run is locked as long as this value exists. Several threads may append
/// to it.
#[derive(Debug)]
pub struct JournalWriter {
    dir: PathBuf,
    /// The name of the journal in it.
    name: String,
    run: String,
    attempt: u32,
    /// `true` if this value made the run. An attempt that resumed it may be the first one that is left.
    is_new: bool,
    /// Locked for each append, so that lines of several threads do not mix.
    journal: Mutex<LineWriter<File>>,
    /// `true` once the journal has events that a later attempt needs. Set before they are appended,
    /// and never cleared; independent of `journal`.
    used: AtomicBool,
    /// `true` if the caller wants nothing of an unused attempt to remain, even if it made the run.
    discarded: AtomicBool,
    /// The operating system releases the lock when this process exits, however it exits. The journal of an
    /// agent has none.
    _lock: Option<File>,
    /// Dropped last: Windows removes no directory with an open file in it.
    removal: RemovalOnDrop,
}

/// Removes the directory of a run when it is dropped, if it has one.
#[derive(Debug, Default)]
struct RemovalOnDrop(Option<PathBuf>);

impl Drop for RemovalOnDrop {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            // What cannot be removed now is removed when runs are pruned.
            let _ = crate::retention::remove_run_dir(dir);
        }
    }
}

impl JournalWriter {
    /// Creates the directory of a new run and begins its first attempt. Assigns the id and the
    /// number of the run to the manifest. Writes `arguments` if they are the input of the run,
    /// and ignores them otherwise. With `sync`, each write waits for the disk.
    ///
    /// # Errors
    ///
    /// If a file cannot be written. Then nothing of the run is left.
    pub fn create(
        root: &Path,
        manifest: Manifest,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        sync: bool,
    ) -> Result<Self> {
        let (run, dir) = store::create(root)
            .context(|| format!("cannot create a directory for the record in `{}`", root.display()))?;
        let made = run_number::next(root)
            .context(|| format!("cannot count the run in `{}`", root.display()))
            .and_then(|number| {
                let manifest = Manifest { run, number: Some(number), ..manifest };
                Self::fill(&dir, manifest, arguments, sync)
            });
        if made.is_err() {
            let _ = crate::retention::remove_run_dir(&dir);
        }
        made.context(|| format!("cannot write the record in `{}`", dir.display()))
    }

    fn fill(
        dir: &Path,
        mut manifest: Manifest,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        sync: bool,
    ) -> Result<Self> {
        // No other process knows the directory yet.
        let Some(lock) = store::lock_if_possible(dir)? else {
            return Err(Error::new(ErrorKind::Locked, "another minder took it"));
        };
        if let InputSource::Arguments { count, .. } = &mut manifest.input {
            *count = manifest::write_arguments(dir, arguments, sync)?;
        }
        manifest.write(dir, sync)?;
        let mut made = Self::begin(dir, manifest.run, lock, sync)?;
        made.is_new = true;
        Ok(made)
    }

    /// Begins the next attempt at a run. With `sync`, each write waits for the disk.
    ///
    /// # Errors
    ///
    /// If the journal cannot be written. Then the run stays as it was.
    pub fn resume(lock: RunLock, sync: bool) -> Result<Self> {
        let RunLock { dir, run, file } = lock;
        Self::begin(&dir, run, file, sync)
            .context(|| format!("cannot write the record in `{}`", dir.display()))
    }

    /// Begins the journal of an agent, in its directory in that of the run, which is created. `attempt` is
    /// the number of its round, and `node` the name of its machine. The run is not locked: other agents work
    /// on it at the same time.
    ///
    /// # Errors
    ///
    /// If the directory of the run is not that of a run of this user, or if a file cannot be written.
    pub fn of_agent(dir: &Path, key: AgentKey, attempt: u32, node: String, sync: bool) -> Result<Self> {
        store::check_run_dir(dir)?;
        let run = store::id(dir)?;
        let own = key.dir(dir);
        let begin = || -> Result<Self> {
            store::create_dirs(&own)?;
            let file = create_private_file(&own.join(JOURNAL))?;
            let started = AttemptStarted { node: Some(node), ..started(&run, attempt) };
            let mut made = Self::with_file(&own, JOURNAL.to_owned(), file, started, sync)?;
            made.used = AtomicBool::new(true);
            Ok(made)
        };
        begin().context(|| format!("cannot write the record in `{}`", own.display()))
    }

    fn begin(dir: &Path, run: String, lock: File, sync: bool) -> Result<Self> {
        let mut attempt = store::last_attempt(dir)?;
        let file = loop {
            attempt = attempt
                .checked_add(1)
                .ok_or_else(|| Error::new(ErrorKind::TooManyAttempts, "there are too many attempts"))?;
            match create_private_file(&dir.join(store::attempt_name(attempt))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                made => break made?,
            }
        };
        let name = store::attempt_name(attempt);
        let mut made = Self::with_file(dir, name, file, started(&run, attempt), sync)?;
        made._lock = Some(lock);
        Ok(made)
    }

    /// Writes the first event of a journal. If that fails, the journal is removed: the run stays as it was.
    fn with_file(dir: &Path, name: String, file: File, started: AttemptStarted, sync: bool) -> Result<Self> {
        let AttemptStarted { run, attempt, .. } = started.clone();
        let mut line = Vec::new();
        codec::encode(&JournalEvent::AttemptStarted(started), &mut line);
        let mut journal = LineWriter::new(file, 0, sync);
        if let Err(error) = journal.append(&line) {
            let _ = fs::remove_file(dir.join(name));
            return Err(error.into());
        }
        if sync {
            sync_dirs(dir);
        }
        Ok(Self {
            dir: dir.to_owned(),
            name,
            run,
            attempt,
            is_new: false,
            journal: Mutex::new(journal),
            used: AtomicBool::new(false),
            discarded: AtomicBool::new(false),
            _lock: None,
            removal: RemovalOnDrop::default(),
        })
    }

    /// Returns the directory of the run.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Appends lines of [`codec::encode`]. They survive this process, and with `sync` a power
    /// failure.
    ///
    /// # Errors
    ///
    /// If the lines cannot be written. Then the journal contains none of them; see
    /// [`LineWriter::append`] for the one exception.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        self.used.store(true, Ordering::SeqCst);
        self.append_metadata(lines)
    }

    /// Appends lines that are not about jobs. If an attempt appended no others, dropping it removes
    /// its journal.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_metadata(&self, lines: &[u8]) -> io::Result<()> {
        self.journal.lock().append(lines)
    }

    /// Returns whether this attempt resumed a run, and [`append`](Self::append) was not called.
    pub fn is_unused(&self) -> bool {
        !self.is_new && !self.used.load(Ordering::SeqCst)
    }

    /// Makes dropping the writer remove this attempt, and the run if this attempt made it.
    /// Returns `false`, and has no effect, if [`append`](Self::append) was called.
    pub fn discard(&self) -> bool {
        let is_unused = !self.used.load(Ordering::SeqCst);
        self.discarded.store(is_unused, Ordering::SeqCst);
        is_unused
    }

    /// Returns whether the file of the journal still exists.
    pub fn exists(&self) -> bool {
        self.dir.join(&self.name).exists()
    }

    /// Returns the length of the complete lines, in bytes.
    pub fn bytes(&self) -> u64 {
        self.journal.lock().bytes()
    }
}

impl Drop for JournalWriter {
    /// Removes the journal of an attempt that recorded nothing, so that the run stays as it was.
    fn drop(&mut self) {
        if self.is_unused() && remove_outputs_of(&self.dir, Some(self.attempt)) {
            let _ = fs::remove_file(self.dir.join(&self.name));
        }
        if self.is_new && self.discarded.load(Ordering::SeqCst) {
            self.removal.0 = Some(self.dir.clone());
        }
    }
}

/// Returns the first event of a journal of this process.
fn started(run: &str, attempt: u32) -> AttemptStarted {
    AttemptStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: run.to_owned(),
        attempt,
        node: None,
        pid: std::process::id(),
        at: crate::event::now(),
    }
}

/// The lock of a run: no other process works on the run as long as this value exists.
#[derive(Debug)]
pub struct RunLock {
    dir: PathBuf,
    run: String,
    file: File,
}

impl RunLock {
    /// Locks a run, and writes nothing. Waits up to 1.5 s, since a runner that was just killed may take
    /// a moment to exit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another process works on the run, [`ErrorKind::Insecure`] if the
    /// directory is a link or belongs to another user, or an error of the file system.
    pub fn acquire(dir: &Path) -> Result<Self> {
        store::check_run_dir(dir)?;
        let run = store::id(dir)?;
        match lock_with_timeout(dir).context(|| format!("cannot lock run {run}"))? {
            Some(file) => Ok(Self { dir: dir.to_owned(), run, file }),
            None => {
                let pid = reader::last_started(dir).map(|started| format!(" (pid {})", started.pid));
                let pid = pid.unwrap_or_default();
                let text = format!("run {run} is in use by another minder{pid}");
                Err(Error::new(ErrorKind::Locked, text))
            }
        }
    }
}

/// Locks a run. Returns `None` if another process still has the lock after [`LOCK_TIMEOUT`].
fn lock_with_timeout(dir: &Path) -> Result<Option<File>> {
    let until = Instant::now() + LOCK_TIMEOUT;
    // The last holder of a run on agents is known without a lock.
    let lock = if dir.join(HOLDERS).exists() { store::lock_if_possible } else { store::lock };
    loop {
        let lock = lock(dir)?;
        if lock.is_some() || Instant::now() >= until {
            return Ok(lock);
        }
        minder_os::time::pause(LOCK_PAUSE, Some(until));
    }
}

/// Removes the output files of all attempts from a directory. The caller has shown all output.
pub fn remove_outputs(dir: &Path) {
    remove_outputs_of(dir, None);
}

/// Removes the output files of one attempt, or of all. Returns whether none is left.
fn remove_outputs_of(dir: &Path, attempt: Option<u32>) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut left = false;
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        if let Ok(path) = output_path(dir, &name)
            && attempt.is_none_or(|attempt| store::attempt_of(&name) == Some(attempt))
        {
            // Pruning removes what is left.
            left |= fs::remove_file(path).is_err();
        }
    }
    !left
}

/// Returns the path of an output file. The name comes from a journal, so it is checked first.
///
/// # Errors
///
/// `InvalidInput` if minder does not create output files of this name.
pub fn output_path(dir: &Path, name: &str) -> io::Result<PathBuf> {
    if store::file_kind(name) != Some(FileKind::Output) {
        let text = format!("`{name}` is not the name of an output");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(dir.join(name))
}

impl OutputSegment {
    /// Returns the path of its file, which is in `dir`, and which bytes of it are meant. They come from a
    /// journal, so they are checked first.
    ///
    /// ```
    /// use minder_record::event::OutputSegment;
    ///
    /// let segment = OutputSegment { stream: 1, file: "out-1-1".to_owned(), at: 3, len: 2 };
    /// let (path, range) = segment.place("runs/61c0aa00".as_ref()).expect("it is the name of an output");
    /// assert_eq!((path.as_path(), range), ("runs/61c0aa00/out-1-1".as_ref(), 3..5));
    /// ```
    ///
    /// # Errors
    ///
    /// If minder does not create output files of this name, or if no file has these bytes.
    pub fn place(&self, dir: &Path) -> io::Result<(PathBuf, Range<u64>)> {
        let path = output_path(dir, &self.file)?;
        let end = self.at.checked_add(self.len).ok_or_else(|| io::Error::other("its row is damaged"))?;
        Ok((path, self.at..end))
    }

    /// Returns whether its file has output of other jobs, too.
    pub fn is_shared(&self) -> bool {
        self.file.starts_with("out-")
    }
}

/// Returns the path of a file with output that stays in the record. The name comes from a journal, so it
/// is checked first.
///
/// ```
/// use minder_record::writer::stored_path;
///
/// let dir = std::path::Path::new("runs/61c0aa00");
/// assert!(stored_path(dir, "stored-1").is_ok());
/// assert!(stored_path(dir, "../stored-1").is_err());
/// ```
///
/// # Errors
///
/// `InvalidInput` if minder does not create such files of this name.
pub fn stored_path(dir: &Path, name: &str) -> io::Result<PathBuf> {
    if store::file_kind(name) != Some(FileKind::Stored) {
        let text = format!("`{name}` is not the name of a file with stored output");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(dir.join(name))
}

/// The most bytes that an attempt stores: half of what all records may take.
pub const STORED_MAX: u64 = 512 << 20;

/// Returns whether an attempt has stored as much output as it may.
///
/// ```
/// assert!(!minder_record::writer::has_stored_all(std::path::Path::new("no/such/run"), 1));
/// ```
pub fn has_stored_all(dir: &Path, attempt: u32) -> bool {
    let path = dir.join(stored_name(attempt));
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() >= STORED_MAX)
}

/// Returns the name of the file with stored output of an attempt.
///
/// ```
/// assert_eq!(minder_record::writer::stored_name(2), "stored-2");
/// ```
pub fn stored_name(attempt: u32) -> String {
    format!("stored-{attempt}")
}

/// Makes the names of new files survive a power failure. Windows does not open directories, and
/// does not need this.
fn sync_dirs(dir: &Path) {
    for dir in dir.ancestors().take(2) {
        let _ = File::open(dir).and_then(|file| file.sync_all());
    }
}
