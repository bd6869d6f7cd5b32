//! Unix: descriptors as sources and as news.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

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
