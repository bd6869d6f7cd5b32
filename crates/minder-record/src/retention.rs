//! Removes old records by a stated rule, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail, ensure};
use minder_os::files::create_private_file;

use super::event::{now, since_1970};
use super::reader;
use super::run_state::RunState;
use super::store::{self, FileKind, RunEntry, kind};

/// Its age says when records were last pruned.
const STAMP: &str = "pruned";
/// The prefix of the name of a run that is being removed: no other process finds a part of it.
const GONE: &str = "gone-";
/// Why a run that a process works on is not removed.
const RUNNING: &str = "it is running";
/// The daily clean-up goes by ages only if the newest of the other runs is younger than this: else
/// the clock may be wrong.
const PLAUSIBLE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// A folder without a manifest is removed when it is older than this.
const STILLBORN_AFTER: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Which records are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionPolicy {
    /// Runs to which nothing was written for longer are removed.
    pub age_max: Duration,
    /// Of the others the newest are kept, so many.
    pub runs_max: usize,
    /// And of those the newest that together take no more bytes.
    pub bytes_max: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { age_max: 30 * DAY, runs_max: 1000, bytes_max: 1 << 30 }
    }
}

/// What was done; of a dry run, what would be.
#[derive(Debug, Default)]
pub struct PruneReport {
    /// Oldest first.
    pub removed: Vec<RemovedRun>,
    /// Runs that the rule names, and why they stay all the same.
    pub left: Vec<(String, anyhow::Error)>,
    /// Bytes of the runs that are still there.
    pub bytes: u64,
}

/// A run that is no more.
#[derive(Debug, PartialEq)]
pub struct RemovedRun {
    /// The id of the run.
    pub id: String,
    /// When it began, in seconds since 1970.
    pub at: f64,
    /// The bytes that it took.
    pub bytes: u64,
    /// The part of the policy that it exceeded.
    pub why: PruneReason,
    /// Whether it was cut short, so that it could have been resumed.
    pub unfinished: bool,
}

/// Which part of the rule a run is beyond: the first that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneReason {
    /// It is older than `age_max`.
    Age,
    /// More than `runs_max` runs are newer.
    Runs,
    /// Newer runs take `bytes_max` bytes.
    Bytes,
}

/// Prunes by the default policy, unless that was done within the last day; then it returns `None`.
/// `own` is the run that has just ended.
///
/// A wrong clock makes all runs look old. So runs are not removed for their age if the newest of
/// the other runs is older than 14 days, or if more than half of all runs would be removed. The
/// limits for number and size do not depend on the clock.
pub fn prune_daily(root: &Path, own: &Path) -> Result<Option<PruneReport>> {
    let stamp = root.join(STAMP);
    let made = fs::symlink_metadata(&stamp).and_then(|about| about.modified());
    // A stamp of the future, where the clock was set back, counts as old.
    if made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age < DAY)) {
        return Ok(None);
    }
    match fs::remove_file(&stamp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => (),
    }
    match create_private_file(&stamp) {
        // Another minder does it at this moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        made => drop(made?),
    }
    prune_by(root, RetentionPolicy::default(), false, |runs| is_plausible(runs, own)).map(Some)
}

/// Whether the ages of runs may be what they seem.
fn is_plausible(runs: &[(RunEntry, Size)], own: &Path) -> bool {
    let now = now();
    let ages: Vec<f64> =
        runs.iter().filter(|(run, _)| run.folder != own).map(|(run, size)| size.age(run, now)).collect();
    let youngest = ages.iter().copied().fold(f64::INFINITY, f64::min);
    let old = ages.iter().filter(|age| **age > RetentionPolicy::default().age_max.as_secs_f64()).count();
    youngest <= PLAUSIBLE.as_secs_f64() && 2 * old <= runs.len()
}

/// Removes runs, oldest first: those to which nothing was written for `age_max`, and of the others
/// all but the newest `runs_max` with at most `bytes_max` bytes. A run that is alive stays, and one
/// that still keeps output which was not shown stays until it is older than `age_max`. Links are
/// not followed, and a run with a file that is not ours stays. With `dry_run` nothing is removed,
/// and all that would be is told.
///
/// # Errors
/// When the folder of the runs cannot be read. What cannot be removed is in [`PruneReport::left`].
pub fn prune(root: &Path, rule: RetentionPolicy, dry_run: bool) -> Result<PruneReport> {
    prune_by(root, rule, dry_run, |_| true)
}

/// See [`prune`]. `by_age` says whether ages count.
fn prune_by(
    root: &Path,
    rule: RetentionPolicy,
    dry_run: bool,
    by_age: impl FnOnce(&[(RunEntry, Size)]) -> bool,
) -> Result<PruneReport> {
    if !dry_run {
        remove_rest(root);
    }
    let sized = |run: RunEntry| {
        let size = Size::of(&run.folder);
        (run, size)
    };
    let found: Vec<(RunEntry, Size)> = store::list(root)?.into_iter().map(sized).collect();
    let by_age = by_age(&found);
    let bytes = found.iter().map(|(_, size)| size.bytes).sum();
    let mut pruned = PruneReport { bytes, ..PruneReport::default() };
    let mut count = found.len();
    let now = now();
    for (run, size) in found.into_iter().rev() {
        let why = match () {
            () if by_age && size.age(&run, now) > rule.age_max.as_secs_f64() => PruneReason::Age,
            () if count > rule.runs_max => PruneReason::Runs,
            () if pruned.bytes > rule.bytes_max => PruneReason::Bytes,
            () => continue,
        };
        let unfinished = is_unfinished(&run.folder);
        let removed =
            check(&run, &size, why).and_then(|()| if dry_run { Ok(()) } else { remove(root, &run) });
        match removed {
            Ok(()) => {
                count -= 1;
                pruned.bytes -= size.bytes;
                pruned.removed.push(RemovedRun {
                    id: run.id,
                    at: run.at,
                    bytes: size.bytes,
                    why,
                    unfinished,
                });
            }
            Err(error) => pruned.left.push((run.id, error)),
        }
    }
    Ok(pruned)
}

/// Whether the last attempt at a run was cut short.
fn is_unfinished(folder: &Path) -> bool {
    let last = store::attempts(folder).ok().and_then(|attempts| attempts.last().copied());
    last.is_some_and(|number| {
        reader::over(&folder.join(store::attempt_name(number))).is_none_or(|over| over.why.is_some())
    })
}

/// What lies in a run's folder.
#[derive(Debug, Default)]
struct Size {
    bytes: u64,
    /// When something was last written, in seconds since 1970.
    last: f64,
    /// Whether there are outputs.
    outputs: bool,
}

impl Size {
    /// For how many seconds nothing was written to the run.
    fn age(&self, run: &RunEntry, now: f64) -> f64 {
        now - self.last.max(run.at.min(now))
    }

    fn of(folder: &Path) -> Self {
        let mut size = Self::default();
        size.add(folder);
        size
    }

    /// Adds what is in a folder of ours. Below it are only folders in which jobs worked.
    fn add(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Does not follow links.
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                self.add(&entry.path());
            } else if about.is_file() {
                self.bytes += about.len();
                self.last = self.last.max(about.modified().map_or(0.0, since_1970));
                self.outputs |= entry.file_name().to_str().and_then(kind) == Some(FileKind::Output);
            }
        }
    }
}

/// Refuses a run that is to stay although the rule names it.
fn check(run: &RunEntry, size: &Size, why: PruneReason) -> Result<()> {
    ensure!(!store::is_alive(&run.folder), RUNNING);
    if why != PruneReason::Age && size.outputs {
        let (progress, _) = RunState::of_run(&run.folder, false)?;
        ensure!(progress.unshown.is_empty(), "it keeps output that was not shown");
    }
    only_ours(&run.folder).map(drop)
}

fn remove(root: &Path, run: &RunEntry) -> Result<()> {
    // Another process may have resumed it since it was inspected.
    let Some(lock) = store::lock(&run.folder)? else { bail!(RUNNING) };
    let gone = store::runs(root).join(format!("{GONE}{}", run.id));
    // A process that opened the lock before then finds no directory to write to.
    let renamed = fs::rename(&run.folder, &gone);
    // Windows renames no folder while a file in it is open (which protects it from the next one who
    // works on it, too), and empties none: a file that is open keeps its place until it is closed.
    drop(lock);
    if renamed.is_err() {
        fs::rename(&run.folder, &gone)?;
    }
    remove_folder(&gone)
}

/// Removes what an earlier pruning that was killed has left.
fn remove_rest(root: &Path) {
    for entry in fs::read_dir(store::runs(root)).into_iter().flatten().flatten() {
        let ours = |name: &str| name.strip_prefix(GONE).is_some_and(store::is_id);
        let name = entry.file_name();
        if name.to_str().is_some_and(ours) {
            let _ = remove_folder(&entry.path());
        }
        if name.to_str().is_some_and(store::is_id) {
            let _ = remove_stillborn(&entry.path());
        }
    }
}

/// Removes what a start has left that was killed before its run was known. One that is just being
/// started is younger.
fn remove_stillborn(folder: &Path) -> Result<()> {
    store::check_folder(folder)?;
    let age = SystemTime::now().duration_since(fs::symlink_metadata(folder)?.modified()?)?;
    if age < STILLBORN_AFTER || !store::is_stillborn(folder) || store::is_alive(folder) {
        return Ok(());
    }
    remove_folder(folder)
}

/// The files and folders in a run's folder, if each has a name that we give.
fn only_ours(folder: &Path) -> Result<Vec<PathBuf>> {
    store::check_folder(folder)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_folder = entry.file_type()?.is_dir();
        let ours = name.to_str().and_then(kind).is_some_and(|kind| (kind == FileKind::Work) == is_folder);
        ensure!(ours, "`{}` in it is not ours", name.display());
        files.push(entry.path());
    }
    Ok(files)
}

/// Removes a run's folder with all its files; a link in it goes, and what it leads to stays.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    for path in only_ours(folder)? {
        // A link is no folder here, and none is followed below.
        match fs::symlink_metadata(&path)?.is_dir() {
            true => fs::remove_dir_all(path)?,
            false => fs::remove_file(path)?,
        }
    }
    Ok(fs::remove_dir(folder)?)
}
