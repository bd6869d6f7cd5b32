//! Removes old runs by a policy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use minder_os::files::create_private_file;

use crate::agents::AGENTS;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{now, since_1970};
use crate::reader;
use crate::run_state::{ComparedArgs, RunState};
use crate::stale_output;
use crate::store::{self, FileKind, RunEntry, file_kind};

/// The name of the file whose modification time is when runs were last pruned.
const STAMP: &str = "pruned";
/// The prefix of the name of a run that is being removed. No other process finds it under that
/// name.
const GONE: &str = "gone-";
/// The reason why a run that a process works on is not removed.
const RUNNING: &str = "it is running";
/// The reason why a run with agents is not removed: they hold no lock.
const UNFINISHED: &str = "other machines may work on it";
/// Daily pruning applies the age limit only if the newest of the other runs is younger than this.
/// Otherwise the clock may be wrong.
const PLAUSIBLE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// A directory without a manifest is removed if it is older than this.
const NEVER_STARTED_AGE: Duration = Duration::from_secs(60 * 60);
/// Files with output of jobs that did not finish are removed if nothing was written to the run for longer.
const UNUSED_OUTPUT_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits on the runs that are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionPolicy {
    /// Runs are removed if nothing was written to them for longer than this.
    pub age_max: Duration,
    /// The maximum number of the other runs. The newest are kept.
    pub runs_max: usize,
    /// The maximum size of those together, in bytes. The newest are kept.
    pub bytes_max: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { age_max: 30 * DAY, runs_max: 1000, bytes_max: 1 << 30 }
    }
}

/// The result of pruning, or of a dry run of it.
#[derive(Debug, Default)]
pub struct PruneReport {
    /// The removed runs, oldest first.
    pub removed: Vec<RemovedRun>,
    /// The ids of runs that exceed the policy but were not removed, with the reasons.
    pub left: Vec<(String, Error)>,
    /// The size of the remaining runs, in bytes.
    pub bytes: u64,
}

/// A run that was removed.
#[derive(Debug, PartialEq)]
pub struct RemovedRun {
    /// The id of the run.
    pub id: String,
    /// The time at which it began, in seconds since 1970.
    pub at: f64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The part of the policy that it exceeded.
    pub why: PruneReason,
    /// `true` if its last attempt did not finish, so that it could have been resumed.
    pub unfinished: bool,
}

/// The first part of the policy that a run exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneReason {
    /// It is older than `age_max`.
    Age,
    /// More than `runs_max` runs are newer.
    Runs,
    /// Newer runs take `bytes_max` bytes.
    Bytes,
}

/// Prunes by the default policy. Returns `None` if that was done within the last day. `own` is the
/// directory of the run that has just finished.
///
/// A wrong clock makes all runs look old. So runs are not removed for their age if the newest of
/// the other runs is older than 14 days, or if more than half of all runs would be removed. The
/// limits for number and size do not depend on the clock.
///
/// # Errors
///
/// As [`prune`]; also if the file with the time of the last pruning cannot be written.
pub fn prune_daily(root: &Path, own: &Path) -> Result<Option<PruneReport>> {
    let stamp = root.join(STAMP);
    let pruned_at = fs::symlink_metadata(&stamp).and_then(|metadata| metadata.modified());
    // A time in the future counts as old: the clock was set back.
    if pruned_at.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age < DAY)) {
        return Ok(None);
    }
    match fs::remove_file(&stamp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => (),
    }
    match create_private_file(&stamp) {
        // Another process prunes right now.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        made => drop(made?),
    }
    prune_by(root, RetentionPolicy::default(), false, |runs| is_plausible(runs, own)).map(Some)
}

/// Returns whether the ages of the runs are plausible.
fn is_plausible(runs: &[(RunEntry, Size)], own: &Path) -> bool {
    let now = now();
    let ages: Vec<f64> =
        runs.iter().filter(|(run, _)| run.dir != own).map(|(run, size)| size.age(run, now)).collect();
    let youngest = ages.iter().copied().fold(f64::INFINITY, f64::min);
    let old = ages.iter().filter(|age| **age > RetentionPolicy::default().age_max.as_secs_f64()).count();
    youngest <= PLAUSIBLE.as_secs_f64() && 2 * old <= runs.len()
}

/// Removes runs that exceed the policy, oldest first.
///
/// A run stays if a process works on it, or if it contains a file that minder does not create. A run that is
/// younger than `age_max` stays if it has output that was not shown, or agents and no end. Output of jobs
/// that did not finish is removed after a week also from a run that stays. Links are not followed. With
/// `dry_run`, nothing is removed, and the report is what would be.
///
/// # Errors
///
/// If the directory of the runs cannot be read. Runs that cannot be removed are in
/// [`PruneReport::left`].
pub fn prune(root: &Path, policy: RetentionPolicy, dry_run: bool) -> Result<PruneReport> {
    prune_by(root, policy, dry_run, |_| true)
}

/// See [`prune`]. `by_age` decides whether the age limit applies.
fn prune_by(
    root: &Path,
    policy: RetentionPolicy,
    dry_run: bool,
    by_age: impl FnOnce(&[(RunEntry, Size)]) -> bool,
) -> Result<PruneReport> {
    if !dry_run {
        remove_rest(root);
    }
    let sized = |run: RunEntry| {
        let size = Size::of(&run.dir);
        (run, size)
    };
    let mut found: Vec<(RunEntry, Size)> = store::list(root)?.into_iter().map(sized).collect();
    let by_age = by_age(&found);
    let now = now();
    if by_age {
        for (run, size) in &mut found {
            let may_have_output = size.outputs || is_elsewhere(run);
            if may_have_output && size.age(run, now) > UNUSED_OUTPUT_AGE.as_secs_f64() {
                size.bytes -= stale_output::remove_unused(&run.dir, dry_run).unwrap_or(0).min(size.bytes);
            }
        }
    }
    let bytes = found.iter().map(|(_, size)| size.bytes).sum();
    let mut pruned = PruneReport { bytes, ..PruneReport::default() };
    let mut count = found.len();
    for (run, size) in found.into_iter().rev() {
        let why = if by_age && size.age(&run, now) > policy.age_max.as_secs_f64() {
            PruneReason::Age
        } else if count > policy.runs_max {
            PruneReason::Runs
        } else if pruned.bytes > policy.bytes_max {
            PruneReason::Bytes
        } else {
            continue;
        };
        let unfinished = is_unfinished(&run.dir);
        let removed = check_removable(&run, &size, why)
            .and_then(|()| if dry_run { Ok(()) } else { remove(root, &run) });
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

fn is_elsewhere(run: &RunEntry) -> bool {
    run.manifest.as_ref().is_ok_and(stale_output::is_elsewhere)
}

/// Returns whether the last attempt at a run did not finish.
fn is_unfinished(dir: &Path) -> bool {
    let last = store::attempts(dir).ok().and_then(|attempts| attempts.last().copied());
    last.is_some_and(|number| {
        reader::attempt_finished(&dir.join(store::attempt_name(number)))
            .is_none_or(|finished| finished.why.is_some())
    })
}

/// The content of the directory of a run.
#[derive(Debug, Default)]
struct Size {
    bytes: u64,
    /// The time of the last modification of a file, in seconds since 1970.
    last: f64,
    /// `true` if there are output files.
    outputs: bool,
}

impl Size {
    /// Returns for how many seconds nothing was written to the run.
    fn age(&self, run: &RunEntry, now: f64) -> f64 {
        now - self.last.max(run.at.min(now))
    }

    fn of(dir: &Path) -> Self {
        let mut size = Self::default();
        size.add(dir);
        size
    }

    /// Adds the content of a directory. The directories in a run are working directories of jobs.
    fn add(&mut self, dir: &Path) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // Does not follow links.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                self.add(&entry.path());
            } else if metadata.is_file() {
                self.bytes += metadata.len();
                self.last = self.last.max(metadata.modified().map_or(0.0, since_1970));
                self.outputs |= entry.file_name().to_str().and_then(file_kind) == Some(FileKind::Output);
            }
        }
    }
}

/// Returns an error for a run that stays although it exceeds the policy.
fn check_removable(run: &RunEntry, size: &Size, why: PruneReason) -> Result<()> {
    if store::is_alive(&run.dir) {
        return Err(Error::new(ErrorKind::Locked, RUNNING));
    }
    if why != PruneReason::Age && run.dir.join(AGENTS).is_dir() && is_unfinished(&run.dir) {
        return Err(Error::new(ErrorKind::Locked, UNFINISHED));
    }
    if why != PruneReason::Age && size.outputs {
        let (state, _) = RunState::of_run(&run.dir, ComparedArgs::None)?;
        if !state.unshown.is_empty() || !state.unshown_by_agents.is_empty() {
            return Err(Error::new(ErrorKind::Unshown, "it keeps output that was not shown"));
        }
    }
    files_of(&run.dir).map(drop)
}

fn remove(root: &Path, run: &RunEntry) -> Result<()> {
    // Another process may have resumed it since it was inspected.
    let Some(lock) = store::lock(&run.dir)? else { return Err(Error::new(ErrorKind::Locked, RUNNING)) };
    if is_elsewhere(run) {
        stale_output::remove_elsewhere(&run.dir);
    }
    let gone = store::runs_dir(root).join(format!("{GONE}{}", run.id));
    // A process that opened the lock before then finds no directory to write to.
    let renamed = fs::rename(&run.dir, &gone);
    // Windows does not rename a directory while a file in it is open. (So a process that resumes the
    // run protects it, too.) It also keeps the name of an open file until the file is closed.
    drop(lock);
    if renamed.is_err() {
        fs::rename(&run.dir, &gone)?;
    }
    remove_run_dir(&gone)
}

/// Removes what an earlier pruning left when it was killed.
fn remove_rest(root: &Path) {
    for entry in fs::read_dir(store::runs_dir(root)).into_iter().flatten().flatten() {
        let is_removed_run = |name: &str| name.strip_prefix(GONE).is_some_and(store::is_id);
        let name = entry.file_name();
        if name.to_str().is_some_and(is_removed_run) {
            let _ = remove_run_dir(&entry.path());
        }
        if name.to_str().is_some_and(store::is_id) {
            let _ = remove_never_started(&entry.path());
        }
    }
}

/// Removes a run whose process was killed before it wrote the manifest. A run that just starts
/// looks the same, but is younger.
fn remove_never_started(dir: &Path) -> Result<()> {
    store::check_run_dir(dir)?;
    let modified = fs::symlink_metadata(dir)?.modified()?;
    // A directory from the future counts as new.
    let age = SystemTime::now().duration_since(modified).unwrap_or_default();
    if age < NEVER_STARTED_AGE || !store::is_never_started(dir) || store::is_alive(dir) {
        return Ok(());
    }
    remove_run_dir(dir)
}

/// Returns the files and directories of a run, if minder creates all of their names.
fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    store::check_run_dir(dir)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_dir = entry.file_type()?.is_dir();
        let kind = name.to_str().and_then(file_kind);
        if kind.is_none_or(|kind| kind.is_dir() != is_dir) {
            let text = format!("`{}` in it is not ours", name.display());
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        files.push(entry.path());
    }
    Ok(files)
}

/// Removes the directory of a run with all its files. Removes a link, not its target.
pub(crate) fn remove_run_dir(dir: &Path) -> Result<()> {
    for path in files_of(dir)? {
        // A link is not a directory here, and `remove_dir_all` follows none.
        if fs::symlink_metadata(&path)?.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(fs::remove_dir(dir)?)
}
