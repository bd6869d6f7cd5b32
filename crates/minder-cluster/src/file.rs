//! Small files that several machines read.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use minder_os::files::{create_private_file, open_no_follow};

/// Reads a file of at most `max` bytes. `None` if it does not exist.
///
/// The file is opened anew each time: on NFS, only a file that was just opened has the data that another
/// machine has written (close-to-open consistency, nfs(5)).
///
/// # Errors
///
/// The file cannot be read, is a link, or is longer.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_no_follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| named("cannot read", path, &error))?,
    };
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(|error| named("cannot read", path, &error))?;
    if bytes.len() as u64 > max {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is too long");
        return Err(named("cannot read", path, &error));
    }
    Ok(Some(bytes))
}

/// Writes a file under another name and renames it, so that no reader sees a part of it.
///
/// # Errors
///
/// Any error of the file system. A file that existed stays.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("tmp");
    let write = || {
        // Of a process that was killed.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => (),
        }
        let mut file = create_private_file(&unfinished)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&unfinished, path)
    };
    write().map_err(|error| named("cannot write", path, &error))
}

/// Creates a file that must not exist.
///
/// # Errors
///
/// `AlreadyExists`, and any other error of the file system.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    create_private_file(path).map_err(|error| named("cannot create", path, &error))
}

/// Adds what was tried, and the path, to an error.
pub(crate) fn named(tried: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{tried} `{}`: {}", path.display(), minder_os::error_text(error)))
}
