//! Finds the files `minder.toml`, and opens those that may be used.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::files::{is_owned_by_user_or_root, is_writable_by_others, open_no_follow};

/// The name of a file with settings.
pub(crate) const FILE_NAME: &str = "minder.toml";
/// The maximum size of such a file.
const FILE_MAX: u64 = 1 << 20;

/// Whose settings a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Project,
    User,
}

/// The result of reading a settings file.
#[derive(Debug)]
pub(super) enum Found {
    Absent,
    /// A file that must not be used, and why.
    Ignored(&'static str),
    Text(Vec<u8>),
}

/// Returns the nearest `minder.toml` in this directory and those above it.
pub(super) fn project_path(cwd: &Path) -> Option<PathBuf> {
    // A directory that cannot be searched has no file for this user.
    let exists = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok();
    cwd.ancestors().map(|dir| dir.join(FILE_NAME)).find(exists)
}

/// Returns the path of the user's file. `family` is that of the operating system.
pub(super) fn user_path(variable: impl Fn(&str) -> Option<OsString>, family: &str) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG base directory specification ignores relative paths.
    let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
    let dir = path("MINDER_CONFIG_DIR").and_then(|dir| std::path::absolute(dir).ok());
    let base = || match family {
        "windows" => absolute("APPDATA"),
        _ => absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config"))),
    };
    Some(dir.or_else(|| base().map(|base| base.join("minder")))?.join(FILE_NAME))
}

/// Returns whether both paths lead to the same file.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Reads a file, if this user may trust it. Links are followed to the user's file only.
///
/// # Errors
/// The file is too large, or cannot be read.
pub(super) fn read(path: &Path, kind: FileKind) -> Result<Found> {
    let cannot = || format!("cannot use `{}`", path.display());
    let target = match kind {
        FileKind::Project => Ok(path.to_owned()),
        FileKind::User => path.canonicalize(),
    };
    let target = match target {
        Ok(target) => target,
        Err(error) if is_absence(error.kind()) => return Ok(Found::Absent),
        Err(error) => return Err(error).with_context(cannot),
    };
    let Ok(metadata) = std::fs::symlink_metadata(&target) else { return Ok(Found::Absent) };
    if metadata.is_symlink() {
        return Ok(Found::Ignored("it is a symbolic link"));
    }
    if let Some(why) = distrust(&metadata) {
        return Ok(Found::Ignored(why));
    }
    let file = open_no_follow(&target).with_context(cannot)?;
    // The path may lead to another file by now.
    match distrust(&file.metadata().with_context(cannot)?) {
        Some(why) => Ok(Found::Ignored(why)),
        None => Ok(Found::Text(read_bounded(file).with_context(cannot)?)),
    }
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

/// Returns why a file is not used.
fn distrust(metadata: &Metadata) -> Option<&'static str> {
    if !metadata.is_file() {
        Some("it is not a regular file")
    } else if !is_owned_by_user_or_root(metadata) {
        Some("it belongs to another user")
    } else if is_writable_by_others(metadata) {
        Some("other users may write to it (chmod go-w)")
    } else {
        None
    }
}

fn read_bounded(file: File) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        bail!("it is larger than {} MiB", FILE_MAX >> 20);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_path_depends_on_the_environment() {
        let path = |family: &str, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            user_path(variable, family).map(|path| path.display().to_string().replace('\\', "/"))
        };
        if cfg!(windows) {
            return;
        }
        let home = ("HOME", "/h");
        let text = |path: &str| Some(path.to_owned());
        assert_eq!(path("unix", &[home]), text("/h/.config/minder/minder.toml"));
        assert_eq!(path("unix", &[home, ("XDG_CONFIG_HOME", "/x")]), text("/x/minder/minder.toml"));
        assert_eq!(path("unix", &[home, ("XDG_CONFIG_HOME", "x")]), text("/h/.config/minder/minder.toml"));
        assert_eq!(path("unix", &[home, ("MINDER_CONFIG_DIR", "/c")]), text("/c/minder.toml"));
        assert_eq!(path("windows", &[home, ("APPDATA", "/a")]), text("/a/minder/minder.toml"));
        assert_eq!(path("unix", &[("HOME", "")]), None);
    }
}
