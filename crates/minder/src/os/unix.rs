//! Unix: descriptors as sources and as news.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::Standard;
use crate::Source;

impl<'a, F: AsFd> From<&'a F> for Source<'a> {
    fn from(source: &'a F) -> Self {
        Self(source.as_fd())
    }
}

/// A descriptor that becomes readable when there is news. Watch it level-triggered, in any loop; never read from it.
pub type News<'a> = BorrowedFd<'a>;

/// See [`super::standard`].
pub(super) fn standard(which: Standard) -> io::Result<File> {
    let copy = match which {
        Standard::Input => io::stdin().as_fd().try_clone_to_owned(),
        Standard::Output => io::stdout().as_fd().try_clone_to_owned(),
        Standard::Error => io::stderr().as_fd().try_clone_to_owned(),
    };
    copy.map(File::from)
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(signal: i32) -> bool {
    signal == libc::SIGTTIN || signal == libc::SIGTTOU
}

/// See [`super::has_terminal`].
pub(super) fn has_terminal() -> bool {
    // Opening fails without a controlling terminal (ENXIO), whatever our streams are.
    File::open("/dev/tty").is_ok()
}

/// See [`super::argument`].
pub(super) fn argument(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// See [`super::os_str`].
pub(super) fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// See [`super::private_file`].
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// See [`super::private_folder`].
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// See [`super::open_plain`].
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)
}
