//! Output of a killed run that no attempt can use any more: its files, and its directories elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use minder_os::files::is_owned_by_user;

use crate::error::Result;
use crate::event::OutputSegment;
use crate::manifest::Manifest;
use crate::run_state::{ComparedArgs, RunState};
use crate::store::{self, FileKind, file_kind};

/// The flag of a manifest whose run has output in another directory than its own.
pub const OUTPUT_ELSEWHERE: &str = "output_elsewhere";

/// Returns whether a run may have output in another directory than its own.
pub(crate) fn is_elsewhere(manifest: &Manifest) -> bool {
    manifest.flags.contains_key(OUTPUT_ELSEWHERE)
}

/// Refuses everything that is not a directory of this user.
///
/// # Errors
///
/// It is not, or cannot be inspected.
pub fn check_output_dir(dir: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(dir)?;
    match (metadata.is_dir(), is_owned_by_user(&metadata)) {
        (false, _) => Err(io::Error::other("not a directory")),
        (true, false) => Err(io::Error::other("its directory belongs to another user")),
        (true, true) => Ok(()),
    }
}

/// Returns the directories outside of the run's own that contain its output: those that have a name
/// that a run chooses, and belong to this user.
pub fn elsewhere(dir: &Path, state: &RunState) -> Vec<PathBuf> {
    let run = dir.file_name().unwrap_or_default();
    let dirs = state.outputs.iter().map(|(attempt, dir)| (attempt, PathBuf::from(dir.to_os())));
    let ours = dirs.filter(|(attempt, dir)| {
        let begins = format!("minder-{}-{attempt}", run.display());
        dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begins))
            && check_output_dir(dir).is_ok()
    });
    ours.map(|(_, dir)| dir).collect()
}

/// Removes the files with output of a run that no finished job refers to: their jobs run again when the
/// run is resumed. Returns the size of those in the directory of the run. With `dry_run`, nothing is
/// removed.
///
/// # Errors
///
/// The record cannot be read, or a process works on the run.
pub(crate) fn remove_unused(dir: &Path, dry_run: bool) -> Result<u64> {
    let Some(_lock) = store::lock(dir)? else { return Ok(0) };
    let (state, damaged) = RunState::of_run(dir, ComparedArgs::None)?;
    if !damaged.is_empty() {
        // An event that cannot be read may refer to any file.
        return Ok(0);
    }
    let used: BTreeSet<&str> =
        state.unshown.values().flatten().map(|segment: &OutputSegment| segment.file.as_str()).collect();
    if !dry_run {
        for dir in elsewhere(dir, &state) {
            remove_files(&dir, &used, dry_run);
            // This fails if the directory is not empty, as intended.
            let _ = fs::remove_dir(dir);
        }
    }
    Ok(remove_files(dir, &used, dry_run))
}

/// Removes all output of a run that is in other directories. The caller has its lock, and removes the run.
pub(crate) fn remove_elsewhere(dir: &Path) {
    let Ok((state, _)) = RunState::of_run(dir, ComparedArgs::None) else { return };
    for dir in elsewhere(dir, &state) {
        remove_files(&dir, &BTreeSet::new(), false);
        let _ = fs::remove_dir(dir);
    }
}

/// Removes the files with output, except those in use. Returns their size.
fn remove_files(dir: &Path, used: &BTreeSet<&str>, dry_run: bool) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_output = |name: &str| file_kind(name) == Some(FileKind::Output) && !used.contains(name);
        // Does not follow links.
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && name.to_str().is_some_and(is_output)
            && (dry_run || fs::remove_file(entry.path()).is_ok())
        {
            bytes += metadata.len();
        }
    }
    bytes
}
