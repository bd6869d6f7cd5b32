//! The record of a run while it runs: rows go in, and are in the file when the call returns.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use minder_os::files::create_private_file;

use super::append_file::LineWriter;
use super::event::{AttemptStarted, JournalEvent};
use super::manifest::{self, InputSource, Manifest};
use super::store::{self, FileKind};
use super::{codec, reader, run_number};

/// How long a run that another minder works on is waited for.
const LOCK_PATIENCE: Duration = Duration::from_millis(1500);
/// The time between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// One attempt at a run. Shared by the loops; while it lives, the run is locked.
#[derive(Debug)]
pub struct JournalWriter {
    folder: PathBuf,
    run: String,
    attempt: u32,
    journal: Mutex<LineWriter<File>>,
    /// Whether something was written that a later attempt has to know.
    used: AtomicBool,
    /// Let go when this process ends, however it ends.
    _lock: File,
}

impl JournalWriter {
    /// Makes the folder of a new run and begins its first attempt. The run's id is put into the
    /// manifest, and the arguments of the command line beside it if they are its input;
    /// otherwise `arguments` is not looked at.
    ///
    /// # Errors
    /// When something cannot be written; nothing is left then.
    pub fn create(
        root: &Path,
        manifest: Manifest,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        sync: bool,
    ) -> Result<Self> {
        let (run, folder) = store::create(root)
            .with_context(|| format!("cannot make a folder for the record in `{}`", root.display()))?;
        let made = run_number::next(root)
            .with_context(|| format!("cannot count the run in `{}`", root.display()))
            .and_then(|number| {
                let manifest = Manifest { run, number: Some(number), ..manifest };
                Self::fill(&folder, manifest, arguments, sync)
            });
        if made.is_err() {
            let _ = super::retention::remove_folder(&folder);
        }
        made.with_context(|| format!("cannot write the record in `{}`", folder.display()))
    }

    fn fill(
        folder: &Path,
        mut manifest: Manifest,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        sync: bool,
    ) -> Result<Self> {
        let Some(lock) = store::lock(folder)? else { bail!("another minder took it") };
        if let InputSource::Arguments { count, .. } = &mut manifest.input {
            *count = manifest::write_arguments(folder, arguments, sync)?;
        }
        manifest.write(folder, sync)?;
        Self::begin(folder, manifest.run, lock, sync)
    }

    /// Begins the next attempt at a run.
    ///
    /// # Errors
    /// When another minder works on it; when something cannot be written.
    pub fn resume(folder: &Path, sync: bool) -> Result<Self> {
        store::check_folder(folder)?;
        let run = store::id(folder)?;
        let lock = patient_lock(folder).with_context(|| format!("cannot lock run {run}"))?;
        let Some(lock) = lock else {
            let pid = reader::last_pid(folder).map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            bail!("run {run} is being run by another minder{pid}");
        };
        Self::begin(folder, run, lock, sync)
            .with_context(|| format!("cannot write the record in `{}`", folder.display()))
    }

    fn begin(folder: &Path, run: String, lock: File, sync: bool) -> Result<Self> {
        let mut attempt = store::last_attempt(folder)?;
        let file = loop {
            attempt = attempt.checked_add(1).context("there are too many attempts")?;
            match create_private_file(&folder.join(store::attempt_name(attempt))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                made => break made?,
            }
        };
        let mut row = Vec::new();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (pid, at) = (std::process::id(), super::event::now());
        codec::encode(
            &JournalEvent::AttemptStarted(AttemptStarted { version, run: run.clone(), attempt, pid, at }),
            &mut row,
        );
        let mut journal = LineWriter::new(file, 0, sync);
        if let Err(error) = journal.append(&row) {
            // Nothing was done: the run is as it was.
            let _ = fs::remove_file(folder.join(store::attempt_name(attempt)));
            return Err(error.into());
        }
        if sync {
            sync_folders(folder);
        }
        let (folder, used) = (folder.to_owned(), AtomicBool::new(false));
        Ok(Self { folder, run, attempt, journal: Mutex::new(journal), used, _lock: lock })
    }

    /// Where the run's files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Appends lines that [`codec::encode`] made: all of them or, with an error, none. They survive
    /// this process, and with `sync` the machine.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        self.used.store(true, Ordering::SeqCst);
        self.note(lines)
    }

    /// The same for lines that say nothing of a job: an attempt that has no others leaves no trace
    /// if it is refused.
    pub fn note(&self, lines: &[u8]) -> io::Result<()> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).append(lines)
    }
}

impl JournalWriter {
    /// Whether this attempt at a run that was begun before has recorded nothing yet.
    pub fn is_unused(&self) -> bool {
        self.attempt > 1 && !self.used.load(Ordering::SeqCst)
    }

    /// Whether the journal is still there.
    pub fn exists(&self) -> bool {
        self.folder.join(store::attempt_name(self.attempt)).exists()
    }
}

impl Drop for JournalWriter {
    /// An attempt that was refused before anything was done leaves no trace: the run is as it was.
    fn drop(&mut self) {
        if self.is_unused() && remove_outputs_of(&self.folder, Some(self.attempt)) {
            let _ = fs::remove_file(self.folder.join(store::attempt_name(self.attempt)));
        }
    }
}

/// Locks a run, with patience: of one that was just killed, the runner may take a moment to go.
fn patient_lock(folder: &Path) -> Result<Option<File>> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        let lock = store::lock(folder)?;
        if lock.is_some() || Instant::now() >= until {
            return Ok(lock);
        }
        minder_os::time::pause(LOCK_PAUSE, Some(until));
    }
}

/// Removes all files with output in a folder, of any attempt: all of it was shown.
pub fn remove_outputs(folder: &Path) {
    remove_outputs_of(folder, None);
}

/// Removes the files with output of an attempt, or of all. Says whether none is left.
fn remove_outputs_of(folder: &Path, attempt: Option<u32>) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut left = false;
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        if let Ok(path) = output_path(folder, &name)
            && attempt.is_none_or(|attempt| store::attempt_of(&name) == Some(attempt))
        {
            // What is left is found when the record is pruned.
            left |= fs::remove_file(path).is_err();
        }
    }
    !left
}

/// Where the output of this name lies. Names come from journals, so they are looked at.
///
/// # Errors
/// When it is no name of an output.
pub fn output_path(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let check = || -> Result<()> {
        ensure!(store::kind(name) == Some(FileKind::Output), "`{name}` is not the name of an output");
        Ok(())
    };
    check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
    Ok(folder.join(name))
}

/// Makes the names of new files survive the machine. Not every system lets a folder be opened: then
/// they do so without.
fn sync_folders(folder: &Path) {
    for folder in folder.ancestors().take(2) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
