//! The working directory of a child, as Windows accepts it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf, Prefix};

use windows_sys::Win32::Foundation::{ERROR_PATH_NOT_FOUND, MAX_PATH};

use crate::sys::spawn::{SpawnError, SpawnStep};

/// The longest directory that a process can be in, in UTF-16 units (documented with
/// `SetCurrentDirectory`).
const DIR_MAX: usize = MAX_PATH as usize - 2;

/// Returns the absolute path of the directory that the child starts in. The current directory of a
/// drive, which a relative path may refer to, changes with that of this process.
pub(super) fn working_dir(given: &Path) -> Result<PathBuf, SpawnError> {
    if given.as_os_str().encode_wide().any(|unit| unit == 0) {
        return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
    }
    if given.as_os_str().is_empty() {
        return Err(
            SpawnStep::Directory.failed(io::Error::from_raw_os_error(ERROR_PATH_NOT_FOUND.cast_signed()))
        );
    }
    let dir = std::path::absolute(given).map(short).map_err(|error| SpawnStep::Directory.failed(error))?;
    if dir.as_os_str().encode_wide().count() > DIR_MAX {
        let text = "longer than the 258 characters that Windows allows for a working directory";
        return Err(SpawnStep::Directory.failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
    }
    Ok(dir)
}

/// Removes `\\?\` where the path keeps its meaning. Neither `cmd.exe` nor a current directory may
/// have this prefix.
pub(super) fn short(path: PathBuf) -> PathBuf {
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return path };
    let mut short = match prefix.kind() {
        Prefix::VerbatimDisk(letter) => OsString::from(format!("{}:", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            [OsStr::new(r"\\"), server, OsStr::new(r"\"), share].into_iter().collect()
        }
        _ => return path,
    };
    short.push(parts.as_path());
    let is_same = short.encode_wide().count() <= DIR_MAX
        && std::path::absolute(&short).is_ok_and(|path| path.as_os_str() == short);
    if is_same { short.into() } else { path }
}
