//! The program of a job in the `PATH` that `--env` sets.

use std::ffi::{OsStr, OsString};
use std::path::{MAIN_SEPARATOR, PathBuf};

use minder_template::Job;

use crate::config::Control;

/// Replaces a program without a directory by its path, if `--env` sets `PATH`. The library searches the
/// `PATH` of this process.
pub(super) fn find_program(control: &Control, job: &Job<'_>, argv: &mut [OsString]) {
    let Some(program) = argv.first_mut() else { return };
    let of_job = control.env_of_job.iter().rev().find(|(name, _)| name == "PATH");
    let path = match of_job {
        Some((_, text)) => text.argv(job).ok().and_then(|argv| argv.into_iter().next()),
        None => control.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()),
    };
    if let Some(path) = path
        && let Some(found) = search(program, &path)
    {
        *program = found.into_os_string();
    }
}

/// Returns the path of the program in one of the directories: the first one if it is nowhere, so that the
/// start fails.
fn search(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let bytes = program.as_encoded_bytes();
    if bytes.is_empty() || bytes.contains(&b'/') || bytes.contains(&(MAIN_SEPARATOR as u8)) {
        return None;
    }
    let candidates: Vec<PathBuf> =
        std::env::split_paths(path).filter_map(|dir| std::path::absolute(dir.join(program)).ok()).collect();
    let is_program = |path: &&PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && minder_os::files::is_executable(&file))
    };
    candidates.iter().find(is_program).or(candidates.first()).cloned()
}
