//! The directories of runs: where they are, their names, and their locks.

use std::cmp::{Ordering, Reverse};
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use minder_os::files::{
    create_private_dir, has_no_locks, is_owned_by_user, is_writable_by_others, open_private_file,
    restrict_to_owner,
};

use crate::agents::{AGENTS, HOLDERS, ROUNDS, SPOOL};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::event::since_1970;
use crate::manifest::{ARGUMENTS, MANIFEST, Manifest, UNFINISHED};

/// The name of the file that the process locks that works on the run.
const LOCK: &str = "lock";
/// The number of digits of an id.
pub(crate) const ID_LEN: usize = 8;
/// The number of times that a lock is tried that only readers hold.
const LOCK_TRIES: u32 = 10_000;
/// The number of ids that are tried for a new run.
const ID_TRIES: u32 = 100;

/// A run in the state directory.
#[derive(Debug)]
pub struct RunEntry {
    /// The id of the run.
    pub id: String,
    /// The directory of the run.
    pub dir: PathBuf,
    /// The time at which it began, in seconds since 1970. Comes from the manifest, or from the
    /// modification time of the directory if the manifest cannot be read.
    pub at: f64,
    /// The manifest, or the reason why it cannot be read.
    pub manifest: Result<Manifest>,
}

/// Returns the user's state directory for minder: `MINDER_STATE_DIR`, or `minder` in
/// `XDG_STATE_HOME`, `~/.local/state` or, on Windows, `LOCALAPPDATA`. It may not exist.
///
/// # Errors
///
/// [`ErrorKind::NoStateDir`] if none of the variables is set, or only relative ones that are not used.
pub fn state_root() -> Result<PathBuf> {
    let root = state_root_from(|name| std::env::var_os(name), std::env::consts::FAMILY)?;
    Ok(std::path::absolute(root)?)
}

/// See [`state_root`].
pub(crate) fn state_root_from(variable: impl Fn(&str) -> Option<OsString>, family: &str) -> Result<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // Those of the variables that are set have relative paths.
    let no_dir = |names: &[&str], unset: &str| {
        let set: Vec<&str> = names.iter().copied().filter(|name| path(name).is_some()).collect();
        let why = match set.as_slice() {
            [] => unset.to_owned(),
            [name] => format!("{name} is a relative path, which is not used"),
            names => format!("{} are relative paths, which are not used", names.join(" and ")),
        };
        Error::new(ErrorKind::NoStateDir, format!("no state directory: {why}"))
    };
    // The XDG base directory specification: "all paths … must be absolute", others are to be ignored.
    let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
    if let Some(root) = path("MINDER_STATE_DIR") {
        return Ok(root);
    }
    if family == "windows" {
        let unset = "neither MINDER_STATE_DIR nor LOCALAPPDATA is set";
        let data = absolute("LOCALAPPDATA").ok_or_else(|| no_dir(&["LOCALAPPDATA"], unset))?;
        return Ok(data.join("minder"));
    }
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    match state {
        Some(state) => Ok(state.join("minder")),
        None => {
            let unset = "none of MINDER_STATE_DIR, XDG_STATE_HOME and HOME is set";
            Err(no_dir(&["XDG_STATE_HOME", "HOME"], unset))
        }
    }
}

/// Returns the directory of all runs.
pub fn runs_dir(root: &Path) -> PathBuf {
    root.join("runs")
}

/// Creates the directory of a new run, and missing directories above it. Returns the id and the
/// directory.
pub(crate) fn create(root: &Path) -> io::Result<(String, PathBuf)> {
    let runs = runs_dir(root);
    create_dirs(&runs)?;
    let random = RandomState::new();
    for number in 0..ID_TRIES {
        let mut hasher = random.build_hasher();
        hasher.write_u32(number);
        hasher.write_u32(std::process::id());
        let id = format!("{:08x}", hasher.finish() >> 32);
        let dir = runs.join(&id);
        match create_private_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => return made.map(|()| (id, dir)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Creates a directory that only its owner can access, and missing directories above it.
///
/// # Errors
///
/// If a directory cannot be created. A directory that exists is not an error.
pub fn create_dirs(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_dirs(parent)?;
    }
    match create_private_dir(path) {
        // Another process created it in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Returns the runs, newest first. Links, and entries whose names are not ids, are left out.
///
/// # Errors
///
/// [`ErrorKind::Insecure`] as for [`check_runs`], [`ErrorKind::Io`] if the directory cannot be
/// read.
pub fn list(root: &Path) -> Result<Vec<RunEntry>> {
    let mut found: Vec<RunEntry> = ids(root)?.into_iter().filter_map(|id| entry(root, id)).collect();
    sort(&mut found);
    Ok(found)
}

/// Returns the runs whose directories changed last, at most `most`, newest first. Reads only their
/// manifests. A directory changes when an attempt begins or ends.
///
/// ```
/// let runs = minder_record::store::recent("no/such/state".as_ref(), 50).expect("no run is no error");
/// assert!(runs.is_empty());
/// ```
///
/// # Errors
///
/// As [`list`].
pub fn recent(root: &Path, most: usize) -> Result<Vec<RunEntry>> {
    let changed = |id: String| {
        let metadata = fs::symlink_metadata(runs_dir(root).join(&id));
        (Reverse(metadata.and_then(|metadata| metadata.modified()).ok()), id)
    };
    let mut ids: Vec<_> = ids(root)?.into_iter().map(changed).collect();
    ids.sort_unstable();
    let runs = ids.into_iter().filter_map(|(_, id)| entry(root, id));
    let mut found: Vec<RunEntry> = runs.take(most).collect();
    sort(&mut found);
    Ok(found)
}

/// Returns the run with this id, unless no job of it ran or its directory is not the user's.
fn entry(root: &Path, id: String) -> Option<RunEntry> {
    let dir = runs_dir(root).join(&id);
    check_run_dir(&dir).ok()?;
    let run = RunEntry::new(id, dir);
    (run.manifest.is_ok() || !is_never_started(&run.dir)).then_some(run)
}

/// Returns whether a process was killed here before it wrote the manifest, so that no job ran.
pub(crate) fn is_never_started(dir: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(dir) else { return false };
    entries.all(|entry| {
        let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
        name.to_str().is_some_and(|name| [LOCK, ARGUMENTS, UNFINISHED].contains(&name))
    })
}

/// Checks the directory of all runs. Returns whether other users may write to it although it
/// belongs to the user. A directory that does not exist is accepted.
///
/// # Errors
///
/// [`ErrorKind::Insecure`] if it is a link or belongs to another user, who could put runs there.
pub fn check_runs(root: &Path) -> Result<bool> {
    let runs = runs_dir(root);
    let metadata = match fs::symlink_metadata(&runs) {
        // The caller's next operation reports both.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        metadata => metadata.context(|| format!("cannot read `{}`", runs.display()))?,
    };
    let refuse = |why: &str| {
        let text = format!("cannot use `{}`: {why} (MINDER_STATE_DIR names another)", runs.display());
        Err(Error::new(ErrorKind::Insecure, text))
    };
    if metadata.is_symlink() {
        return refuse("it is a link");
    }
    // The caller's next operation reports a file.
    if metadata.is_dir() && !is_owned_by_user(&metadata) {
        return refuse("it belongs to another user");
    }
    Ok(metadata.is_dir() && is_writable_by_others(&metadata))
}

/// Removes the access of other users to the directory of all runs. Returns whether they could write
/// to it.
///
/// # Errors
///
/// As [`check_runs`]; also if the access cannot be removed.
pub fn secure_runs(root: &Path) -> Result<bool> {
    let is_writable = check_runs(root)?;
    if is_writable {
        let runs = runs_dir(root);
        let why = || format!("cannot use `{}`: other users may change it", runs.display());
        restrict_to_owner(&runs).context(why)?;
        if check_runs(root)? {
            let text = format!("{} (MINDER_STATE_DIR names another)", why());
            return Err(Error::new(ErrorKind::Insecure, text));
        }
    }
    Ok(is_writable)
}

/// Sorts runs by their numbers, newest first. The clock matters only for runs without a number,
/// which are those of old versions and those with a damaged manifest. Such a run comes after the
/// last numbered one that began before it.
fn sort(found: &mut [RunEntry]) {
    let number = |run: &RunEntry| run.manifest.as_ref().ok().and_then(|manifest| manifest.number);
    let known: Vec<(u64, f64)> = found.iter().filter_map(|run| Some((number(run)?, run.at))).collect();
    let before = |at: f64| known.iter().filter(|known| known.1 <= at).map(|known| known.0).max();
    found.sort_by_cached_key(|run| {
        let position = number(run).or_else(|| before(run.at)).unwrap_or(0);
        (Reverse(position), Reverse(Time(run.at)), run.id.clone())
    });
}

/// A time in seconds, ordered.
#[derive(PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl RunEntry {
    fn new(id: String, dir: PathBuf) -> Self {
        let manifest = Manifest::read(&dir);
        let made =
            || fs::symlink_metadata(&dir).and_then(|metadata| metadata.modified()).map_or(0.0, since_1970);
        let at = manifest.as_ref().map_or_else(|_| made(), |manifest| manifest.at);
        Self { id, dir, at, manifest }
    }
}

/// Returns the names in the directory of all runs that are ids.
pub(crate) fn ids(root: &Path) -> Result<Vec<String>> {
    let runs = runs_dir(root);
    check_runs(root)?;
    let entries = match fs::read_dir(&runs) {
        // Windows reports this also for a path below a file.
        Err(error) if error.kind() == io::ErrorKind::NotFound && root.is_file() => {
            Err(io::ErrorKind::NotADirectory.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries,
    };
    let entries = entries.context(|| format!("cannot read `{}`", runs.display()))?;
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.context(|| format!("cannot read `{}`", runs.display()))?;
        ids.extend(entry.file_name().into_string().ok().filter(|name| is_id(name)));
    }
    Ok(ids)
}

/// Returns whether this is a complete id of a run.
pub fn is_id(name: &str) -> bool {
    name.len() == ID_LEN && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses a path that is not a directory of this user. A link could lead anywhere, and the run of
/// another user contains that user's command.
pub(crate) fn check_run_dir(dir: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(dir).context(|| format!("cannot read `{}`", dir.display()))?;
    if !metadata.is_dir() {
        let text = format!("`{}` is a link or a file, not a directory: it is left alone", dir.display());
        return Err(Error::new(ErrorKind::Insecure, text));
    }
    if !is_owned_by_user(&metadata) {
        let text = format!("`{}` belongs to another user: it is left alone", dir.display());
        return Err(Error::new(ErrorKind::Insecure, text));
    }
    Ok(())
}

/// The kind of a file in the directory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The manifest, complete or incomplete.
    Manifest,
    /// The arguments of the command line.
    Arguments,
    /// The lock file.
    Lock,
    /// The journal of this attempt.
    Attempt(u32),
    /// Output of jobs.
    Output,
    /// Output that stays in the record (`--keep-output`).
    Stored,
    /// The working directory of a job (`--workdir ...`).
    Work,
    /// A directory that several machines share: agents, rounds, holders, or the spool.
    Shared,
}

impl FileKind {
    /// Returns whether it is a directory.
    pub(crate) fn is_dir(self) -> bool {
        matches!(self, Self::Work | Self::Shared)
    }
}

/// Returns the kind of file that has this name, or `None` if minder does not create such names.
pub fn file_kind(name: &str) -> Option<FileKind> {
    let is_plain = |rest: &str| {
        !rest.is_empty()
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    match name {
        MANIFEST | UNFINISHED => return Some(FileKind::Manifest),
        ARGUMENTS => return Some(FileKind::Arguments),
        LOCK => return Some(FileKind::Lock),
        AGENTS | ROUNDS | HOLDERS | SPOOL => return Some(FileKind::Shared),
        _ => (),
    }
    if let Some(number) = name.strip_prefix("attempt-").and_then(|rest| rest.strip_suffix(".jsonl")) {
        let parsed = number.parse().ok().filter(|parsed: &u32| *parsed > 0 && parsed.to_string() == number);
        return parsed.map(FileKind::Attempt);
    }
    if let Some(number) = name.strip_prefix("work-") {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        return if is_number { Some(FileKind::Work) } else { None };
    }
    if name.strip_prefix("stored-").is_some_and(is_plain) {
        return Some(FileKind::Stored);
    }
    let rest = ["out-", "spill-", "part-"].iter().find_map(|kind| name.strip_prefix(kind));
    if rest.is_some_and(is_plain) { Some(FileKind::Output) } else { None }
}

/// Returns the name of the journal of an attempt.
pub fn attempt_name(number: u32) -> String {
    format!("attempt-{number}.jsonl")
}

/// Returns the numbers of the attempts of a run that have a journal, in ascending order.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn attempts(dir: &Path) -> io::Result<Vec<u32>> {
    numbers(dir, |name| match file_kind(name) {
        Some(FileKind::Attempt(number)) => Some(number),
        _ => None,
    })
}

/// Returns the number of the last attempt that has a journal or output, or 0.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn last_attempt(dir: &Path) -> io::Result<u32> {
    let all = numbers(dir, |name| match file_kind(name) {
        Some(FileKind::Attempt(number)) => Some(number),
        // `part-` is followed by the number of a job.
        Some(FileKind::Output) if !name.starts_with("part-") => attempt_of(name),
        _ => None,
    });
    Ok(all?.last().copied().unwrap_or(0))
}

/// Returns the attempt that created an output file: A of `out-A-W` and `spill-A-W-N`, where W is the
/// index of the worker thread.
pub fn attempt_of(output: &str) -> Option<u32> {
    output.split('-').nth(1).and_then(|number| number.parse().ok())
}

/// Returns the numbers in the names of a run's files, in ascending order.
fn numbers(dir: &Path, number: impl Fn(&str) -> Option<u32>) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir)? {
        numbers.extend(entry?.file_name().to_str().and_then(&number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the message for a state directory without runs.
pub fn no_runs_text(root: &Path) -> String {
    format!("no run is recorded in `{}`", runs_dir(root).display())
}

/// Returns the path of the file that is open in the process that works on the run.
///
/// ```
/// let lock = minder_record::store::lock_path("runs/61c0aa00".as_ref());
/// assert!(lock.ends_with("lock"));
/// ```
pub fn lock_path(dir: &Path) -> PathBuf {
    dir.join(LOCK)
}

/// Returns whether a process works on the run. Takes the lock of the run for a moment.
pub fn is_alive(dir: &Path) -> bool {
    let Ok(file) = crate::manifest::open_file(&dir.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Takes the lock of a run, and creates its file if it is missing. Returns `None` if another
/// process works on the run.
pub(crate) fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = open_lock(dir)?;
    Ok(has_locked(&file)?.then_some(file))
}

/// The same, also where the file system has no locks (`ENOLCK`, as NFS without its lock daemon). Only for a
/// process that other means exclude from the run as well.
pub(crate) fn lock_if_possible(dir: &Path) -> io::Result<Option<File>> {
    let file = open_lock(dir)?;
    let has_locked = match has_locked(&file) {
        Err(error) if has_no_locks(&error) => true,
        has_locked => has_locked?,
    };
    Ok(has_locked.then_some(file))
}

fn open_lock(dir: &Path) -> io::Result<File> {
    let path = dir.join(LOCK);
    match open_private_file(&path) {
        // A complete run is read there.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => crate::manifest::open_file(&path),
        opened => opened,
    }
}

/// Locks a file. Returns `false` if another process has the lock.
fn has_locked(file: &File) -> io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => (),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // A process in `is_alive` holds a shared lock for a moment. Then this one succeeds, too.
        match file.try_lock_shared() {
            // If unlocking fails, the next try fails, too. (Wine reports an error for a lock that it
            // released.)
            Ok(()) => drop(file.unlock()),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        thread::yield_now();
    }
    Ok(false)
}

/// Returns the id of a run, which is the name of its directory.
pub(crate) fn id(dir: &Path) -> Result<String> {
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name));
    name.map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::InvalidId, format!("`{}` is not the directory of a run", dir.display()))
    })
}
