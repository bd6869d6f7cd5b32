//! Windows: handles as sources and as news.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};

use super::Standard;
use crate::Source;
use crate::command::Size;

impl<'a, H: AsHandle> From<&'a H> for Source<'a> {
    fn from(source: &'a H) -> Self {
        Self(crate::sys::wait::Source::handle(source))
    }
}

pub use crate::sys::wait::News;

/// See [`super::standard`].
pub(super) fn standard(which: Standard) -> io::Result<File> {
    let copy = match which {
        Standard::Input => io::stdin().as_handle().try_clone_to_owned(),
        Standard::Output => io::stdout().as_handle().try_clone_to_owned(),
        Standard::Error => io::stderr().as_handle().try_clone_to_owned(),
    };
    copy.map(File::from)
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(_signal: i32) -> bool {
    false
}

/// See [`super::signal_number`].
pub(super) fn signal_number(name: &str) -> Option<i32> {
    // The two that mean something to a job object here.
    match name {
        "KILL" => Some(9),
        "TERM" => Some(15),
        _ => None,
    }
}

/// See [`super::has_terminal`].
pub(super) fn has_terminal() -> bool {
    false
}

/// See [`super::terminal`].
pub(super) fn terminal() -> io::Result<File> {
    std::fs::OpenOptions::new().read(true).write(true).open("CONIN$")
}

/// See [`super::argument`].
pub(super) fn argument(bytes: Vec<u8>) -> OsString {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into(),
    }
}

/// See [`super::os_str`].
pub(super) fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(OsStr::new(text)),
        Cow::Owned(text) => Cow::Owned(text.into()),
    }
}

/// See [`super::private_file`].
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// See [`super::private_pipe`].
pub(super) fn private_pipe(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`super::private_folder`].
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// See [`super::open_plain`].
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// See [`super::read_at`].
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(buffer, at)
}

/// See [`super::send`].
pub(super) fn send(_from: &File, _at: u64, _len: u64, _to: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`super::enlarge_pipe`].
pub(super) fn enlarge_pipe(_pipe: &File) {}

/// See [`super::path_of_input`].
pub(super) fn path_of_input() -> Option<PathBuf> {
    None
}

/// See [`super::terminal_name`].
pub(super) fn terminal_name() -> Option<OsString> {
    None
}

/// See [`super::terminal_size`].
pub(super) fn terminal_size() -> Option<Size> {
    None
}
