//! The folders of runs: where they are, what they are called, and who works in them.

use std::cmp::{Ordering, Reverse};
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use minder_os::files::{
    create_private_dir, create_private_file, is_owned_by_user, is_writable_by_others, restrict_to_owner,
};

use super::event::since_1970;
use super::manifest::{ARGUMENTS, MANIFEST, Manifest, UNFINISHED};

/// Locked by the process that works on the run.
const LOCK: &str = "lock";
/// Digits of an id.
const ID_LEN: usize = 8;
/// How often a lock is asked for that only people who look hold.
const LOCK_TRIES: u32 = 10_000;
/// How many ids are tried before something else must be wrong.
const ID_TRIES: u32 = 100;

/// A run that was found.
#[derive(Debug)]
pub struct RunEntry {
    /// The id of the run.
    pub id: String,
    /// The directory of the run.
    pub folder: PathBuf,
    /// When it began, in seconds since 1970: by its manifest, or else by its folder.
    pub at: f64,
    /// What it was asked to do, or why that cannot be read.
    pub manifest: Result<Manifest>,
}

/// The user's state folder for minder. It need not exist.
pub fn state_root() -> Result<PathBuf> {
    let root = state_root_from(|name| std::env::var_os(name), std::env::consts::FAMILY)?;
    Ok(std::path::absolute(root)?)
}

/// See [`state_root`].
pub(crate) fn state_root_from(variable: impl Fn(&str) -> Option<OsString>, family: &str) -> Result<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG base directory specification: "all paths … must be absolute", others are to be ignored.
    let whole = |name: &str| path(name).filter(|path| path.is_absolute());
    if let Some(root) = path("MINDER_STATE_DIR") {
        return Ok(root);
    }
    if family == "windows" {
        let data = whole("LOCALAPPDATA")
            .context("no state folder: neither MINDER_STATE_DIR nor LOCALAPPDATA is set")?;
        return Ok(data.join("minder"));
    }
    let state = whole("XDG_STATE_HOME").or_else(|| whole("HOME").map(|home| home.join(".local/state")));
    let state = state.context("no state folder: none of MINDER_STATE_DIR, XDG_STATE_HOME and HOME is set")?;
    Ok(state.join("minder"))
}

/// The folder of all runs.
pub fn runs(root: &Path) -> PathBuf {
    root.join("runs")
}

/// Makes the folder of a new run, and what is missing above it.
pub(crate) fn create(root: &Path) -> io::Result<(String, PathBuf)> {
    let runs = runs(root);
    make_folders(&runs)?;
    let random = RandomState::new();
    for number in 0..ID_TRIES {
        let mut hasher = random.build_hasher();
        hasher.write_u32(number);
        hasher.write_u32(std::process::id());
        let id = format!("{:08x}", hasher.finish() >> 32);
        let folder = runs.join(&id);
        match create_private_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => return made.map(|()| (id, folder)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Makes a folder for its owner alone, and what is missing above it.
pub fn make_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folders(parent)?;
    }
    match create_private_dir(path) {
        // Another minder was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Finds a run by its id, or by the first digits of it if no other run has the same.
pub fn find(root: &Path, word: &str) -> Result<PathBuf> {
    let hex = !word.is_empty() && word.len() <= ID_LEN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(hex, "`{word}` is no run: an id is up to {ID_LEN} hexadecimal digits");
    let word = word.to_ascii_lowercase();
    let mut matching: Vec<String> = ids(root)?.into_iter().filter(|id| id.starts_with(&word)).collect();
    matching.sort();
    let id = match matching.as_slice() {
        [] => bail!("there is no run `{word}` in `{}`", runs(root).display()),
        [id] => id,
        several => {
            const NAMED_MAX: usize = 8;
            let named = several.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            let more = if several.len() > NAMED_MAX { ", …" } else { "" };
            bail!("`{word}` is the beginning of {} runs: {named}{more}", several.len());
        }
    };
    let folder = runs(root).join(id);
    check_folder(&folder)?;
    Ok(folder)
}

/// The runs, newest first. Links and whatever else lies there are left out.
pub fn list(root: &Path) -> Result<Vec<RunEntry>> {
    let mut found: Vec<RunEntry> = Vec::new();
    for id in ids(root)? {
        let folder = runs(root).join(&id);
        if check_folder(&folder).is_err() {
            continue;
        }
        let run = RunEntry::new(id, folder);
        if run.manifest.is_ok() || !is_stillborn(&run.folder) {
            found.push(run);
        }
    }
    sort(&mut found);
    Ok(found)
}

/// Whether this is what a start leaves that was killed before the manifest was written: nothing had
/// run.
pub(crate) fn is_stillborn(folder: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    entries.all(|entry| {
        let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
        name.to_str().is_some_and(|name| [LOCK, ARGUMENTS, UNFINISHED].contains(&name))
    })
}

/// Refuses a folder of all runs in which another user may put runs, or which is a link. Returns
/// whether other users may change it although it is ours.
pub fn check_runs(root: &Path) -> Result<bool> {
    let runs = runs(root);
    let about = match fs::symlink_metadata(&runs) {
        // Both are told by what is to be done there.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        about => about.with_context(|| format!("cannot read `{}`", runs.display()))?,
    };
    let refused =
        |why: &str| anyhow!("cannot use `{}`: {why} (MINDER_STATE_DIR names another)", runs.display());
    ensure!(!about.is_symlink(), refused("it is a link"));
    // A file there is told by what is to be done with it.
    ensure!(!about.is_dir() || is_owned_by_user(&about), refused("it belongs to another user"));
    Ok(about.is_dir() && is_writable_by_others(&about))
}

/// Takes the rights of other users on the folder of all runs away, if they may change it. Returns
/// whether they might.
pub fn secure_runs(root: &Path) -> Result<bool> {
    let open = check_runs(root)?;
    if open {
        let runs = runs(root);
        let why = || format!("cannot use `{}`: other users may change it", runs.display());
        restrict_to_owner(&runs).with_context(why)?;
        ensure!(!check_runs(root)?, "{} (MINDER_STATE_DIR names another)", why());
    }
    Ok(open)
}

/// Sorts runs, newest first, by their numbers. The clock decides only where one without a number
/// belongs, as those of old versions and those with a damaged manifest are: behind the last one
/// with a number that began before it.
fn sort(found: &mut [RunEntry]) {
    let number = |run: &RunEntry| run.manifest.as_ref().ok().and_then(|manifest| manifest.number);
    let known: Vec<(u64, f64)> = found.iter().filter_map(|run| Some((number(run)?, run.at))).collect();
    let before = |at: f64| known.iter().filter(|known| known.1 <= at).map(|known| known.0).max();
    found.sort_by_cached_key(|run| {
        let place = number(run).or_else(|| before(run.at)).unwrap_or(0);
        (Reverse(place), Reverse(Time(run.at)), run.id.clone())
    });
}

/// Seconds, in their order.
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
    fn new(id: String, folder: PathBuf) -> Self {
        let manifest = Manifest::read(&folder);
        let made =
            || fs::symlink_metadata(&folder).and_then(|about| about.modified()).map_or(0.0, since_1970);
        let at = manifest.as_ref().map_or_else(|_| made(), |manifest| manifest.at);
        Self { id, folder, at, manifest }
    }
}

/// Everything that is called like a run.
pub(crate) fn ids(root: &Path) -> Result<Vec<String>> {
    let runs = runs(root);
    check_runs(root)?;
    let entries = match fs::read_dir(&runs) {
        // Windows says so of what is below a file, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound && root.is_file() => {
            Err(io::ErrorKind::NotADirectory.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries,
    };
    let entries = entries.with_context(|| format!("cannot read `{}`", runs.display()))?;
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read `{}`", runs.display()))?;
        ids.extend(entry.file_name().into_string().ok().filter(|name| is_id(name)));
    }
    Ok(ids)
}

/// Whether this is a whole id.
pub fn is_id(name: &str) -> bool {
    name.len() == ID_LEN && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses what is no folder of this user: a link could lead anywhere, and another user's run is
/// that user's command.
pub(crate) fn check_folder(folder: &Path) -> Result<()> {
    let about =
        fs::symlink_metadata(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    ensure!(about.is_dir(), "`{}` is not a folder, but a link or a file: it is left alone", folder.display());
    ensure!(is_owned_by_user(&about), "`{}` belongs to another user: it is left alone", folder.display());
    Ok(())
}

/// What a file in a run's folder is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The manifest, complete or not.
    Manifest,
    /// The arguments of the command line.
    Arguments,
    /// The lock file.
    Lock,
    /// The journal of this attempt.
    Attempt(u32),
    /// Output that is or was kept.
    Output,
    /// A folder that a job worked in (`--workdir ...`).
    Work,
}

/// Which kind of file has this name; None: we do not make such names.
pub fn kind(name: &str) -> Option<FileKind> {
    let plain = |rest: &str| {
        !rest.is_empty()
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    match name {
        MANIFEST | UNFINISHED => return Some(FileKind::Manifest),
        ARGUMENTS => return Some(FileKind::Arguments),
        LOCK => return Some(FileKind::Lock),
        _ => (),
    }
    if let Some(number) = name.strip_prefix("attempt-").and_then(|rest| rest.strip_suffix(".jsonl")) {
        let parsed = number.parse().ok().filter(|parsed: &u32| *parsed > 0 && parsed.to_string() == number);
        return parsed.map(FileKind::Attempt);
    }
    if let Some(number) = name.strip_prefix("work-") {
        return number
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(FileKind::Work)
            .filter(|_| plain(number));
    }
    let rest = ["out-", "spill-", "part-"].iter().find_map(|kind| name.strip_prefix(kind));
    rest.filter(|rest| plain(rest)).map(|_| FileKind::Output)
}

/// The name of an attempt's journal.
pub fn attempt_name(number: u32) -> String {
    format!("attempt-{number}.jsonl")
}

/// The attempts of a run, in order.
pub fn attempts(folder: &Path) -> io::Result<Vec<u32>> {
    numbers(folder, |name| match kind(name) {
        Some(FileKind::Attempt(number)) => Some(number),
        _ => None,
    })
}

/// The number of the last attempt that left a journal or output; 0 if none did.
pub fn last_attempt(folder: &Path) -> io::Result<u32> {
    let all = numbers(folder, |name| match kind(name) {
        Some(FileKind::Attempt(number)) => Some(number),
        // Parts have the number of their job.
        Some(FileKind::Output) if !name.starts_with("part-") => attempt_of(name),
        _ => None,
    });
    Ok(all?.last().copied().unwrap_or(0))
}

/// The attempt that made a file with output, `out-A-L` or `spill-A-L-N`.
pub fn attempt_of(output: &str) -> Option<u32> {
    output.split('-').nth(1).and_then(|number| number.parse().ok())
}

/// The numbers that the names of a run's files give, in order.
fn numbers(folder: &Path, number: impl Fn(&str) -> Option<u32>) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(entry?.file_name().to_str().and_then(&number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// What is said where there is no run.
pub fn none(root: &Path) -> String {
    format!("no run is recorded in `{}`", runs(root).display())
}

/// Returns whether a process works on the run at this moment.
pub fn is_alive(folder: &Path) -> bool {
    let Ok(file) = super::manifest::open_file(&folder.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Takes the lock of a run. Returns `None` if another process has it. The file is created if it is
/// missing.
pub(crate) fn lock(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = match create_private_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Refuses a link; opening for writing does not.
            drop(super::manifest::open_file(&path)?);
            OpenOptions::new().read(true).write(true).open(&path)?
        }
        made => made?,
    };
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => (),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // `is_alive` holds a shared lock for a moment.
        match file.try_lock_shared() {
            // Where that fails, the next try fails, too. (Wine says so of a lock that it has given back.)
            Ok(()) => drop(file.unlock()),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        thread::yield_now();
    }
    Ok(None)
}

/// The id of a run, which is the name of its folder.
pub(crate) fn id(folder: &Path) -> Result<String> {
    let name = folder.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name));
    name.map(str::to_owned).ok_or_else(|| anyhow!("`{}` is not the folder of a run", folder.display()))
}
