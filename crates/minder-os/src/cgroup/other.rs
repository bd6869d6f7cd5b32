//! Systems without cgroups.

use std::fs::File;
use std::io;
use std::time::Duration;

pub(super) fn find() -> io::Result<Option<(File, File)>> {
    Ok(None)
}

pub(super) fn read(_dir: &File, _file: &str) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn write(_dir: &File, _file: &str, _text: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn create(_dir: &File, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn open(_dir: &File, _name: &str) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn remove(_dir: &File, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn names(_dir: &File) -> io::Result<Vec<String>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn wait_empty(_dir: &File, _timeout: Duration) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
