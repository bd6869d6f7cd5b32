//! Paths: the repository, its files, the target directory.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the repository's root: the nearest directory with a lock file of cargo, upwards from the package
/// that cargo runs.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = here.ancestors().find(|directory| directory.join("Cargo.lock").is_file());
    root.map_or_else(|| here.clone(), Path::to_path_buf)
}

/// Returns the directory that cargo builds into; builds for other systems go below it.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => std::path::absolute(&dir).unwrap_or_else(|_| dir.into()),
        None => root().join("target"),
    }
}

/// Returns the files of the repository, relative to its root: those that git tracks or would track.
/// Without git, all except those in directories named `target*`.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut files: Vec<PathBuf> = match listed {
        Ok(out) if out.status.success() => {
            let names = String::from_utf8(out.stdout).context("a file name is not UTF-8")?;
            names.split('\0').filter(|n| !n.is_empty()).map(PathBuf::from).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(&root(), Path::new(""), &mut found)?;
            found
        }
    };
    files.retain(|f| root().join(f).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

fn walk(root: &Path, below: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = below.join(&name);
        if name == ".git" {
            // A directory, or in another worktree a file that names one.
            continue;
        }
        if !entry.file_type()?.is_dir() {
            found.push(path);
        } else if !name.to_string_lossy().starts_with("target") {
            walk(root, &path, found)?;
        }
    }
    Ok(())
}
