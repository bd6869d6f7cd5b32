//! Strings, descriptors and handles as each operating system has them.
#![expect(unsafe_code, reason = "descriptors of the caller")]

use std::ffi::{CStr, OsStr};
use std::fs::File;

use minder::Descriptors;
use minder::poll::Source;

use crate::status::Failure;

#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
#[cfg(windows)]
use std::os::windows::io::{
    AsHandle, AsRawHandle, AsSocket, BorrowedHandle, BorrowedSocket, FromRawHandle, OwnedHandle, RawHandle,
};

/// A descriptor; on Windows a `HANDLE`. The header has the definition.
#[cfg(unix)]
pub type minder_fd = RawFd;
/// A descriptor; on Windows a `HANDLE`. The header has the definition.
#[cfg(windows)]
pub type minder_fd = RawHandle;

/// The value in place of a descriptor.
#[cfg(unix)]
pub(crate) const NO_FD: minder_fd = -1;
#[cfg(windows)]
pub(crate) const NO_FD: minder_fd = std::ptr::null_mut();

/// Returns a string as the operating system has it: bytes on Unix, UTF-8 on Windows.
pub(crate) fn os_str(text: &CStr) -> Option<&OsStr> {
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStrExt::from_bytes(text.to_bytes()));
    #[cfg(windows)]
    return text.to_str().ok().map(OsStr::new);
}

/// Fails for a number that cannot be a descriptor.
pub(crate) fn check_fd(fd: minder_fd) -> Result<minder_fd, Failure> {
    #[cfg(unix)]
    let is_valid = fd >= 0;
    #[cfg(windows)]
    let is_valid = !fd.is_null() && fd as isize != -1;
    if is_valid { Ok(fd) } else { Err(Failure::invalid("argument `fd` is not a descriptor")) }
}

/// Fails for a descriptor that is not open.
fn check_open(fd: minder_fd) -> Result<minder_fd, Failure> {
    let fd = check_fd(fd)?;
    #[cfg(unix)]
    if let Err(error) = rustix::io::fcntl_getfd(Fd(fd)) {
        let failure = Failure::from(std::io::Error::from(error));
        let failure = failure.with_text(|reason| format!("argument `fd` is {fd}: {reason}"));
        return Err(failure.with_status(crate::minder_status::MINDER_INVALID));
    }
    Ok(fd)
}

/// A descriptor of the caller, for the time of one call.
#[cfg(unix)]
struct Fd(RawFd);

#[cfg(unix)]
impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is not -1. If it is not open, the kernel refuses the one call that is made with it.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

#[cfg(windows)]
struct Fd(RawHandle);

#[cfg(windows)]
impl AsHandle for Fd {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        // SAFETY: it is not NULL. If it is not open, the kernel refuses the one call that is made with it.
        unsafe { BorrowedHandle::borrow_raw(self.0) }
    }
}

#[cfg(windows)]
impl AsSocket for Fd {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        // SAFETY: it is not INVALID_SOCKET. If it is not open, the kernel refuses the call.
        unsafe { BorrowedSocket::borrow_raw(self.0 as _) }
    }
}

/// Calls `body` with a descriptor of the caller as a source of a poller.
pub(crate) fn with_source<T>(
    fd: minder_fd,
    is_socket: bool,
    body: impl FnOnce(Source<'_>) -> minder::Result<T>,
) -> Result<T, Failure> {
    let fd = Fd(check_fd(fd)?);
    let source = if is_socket { Source::socket(&fd) } else { Source::from(&fd) };
    Ok(body(source)?)
}

/// Duplicates a descriptor of the caller. Children do not inherit the copy by accident.
pub(crate) fn duplicate(fd: minder_fd) -> Result<File, Failure> {
    let fd = Fd(check_open(fd)?);
    #[cfg(unix)]
    let copy = fd.as_fd().try_clone_to_owned();
    #[cfg(windows)]
    let copy = fd.as_handle().try_clone_to_owned();
    let copy = copy.map_err(|error| {
        Failure::from(error).with_text(|reason| format!("failed to duplicate argument `fd`: {reason}"))
    });
    Ok(File::from(copy?))
}

/// Takes over a descriptor of the caller, and adds it to those that a command owns.
///
/// # Safety
/// If it is open, the caller neither uses nor closes it after a success.
pub(crate) unsafe fn adopt(fd: minder_fd, owned: &mut Descriptors) -> Result<(), Failure> {
    let fd = check_open(fd)?;
    #[cfg(unix)]
    if fd <= 2 {
        return Err(Failure::invalid(format!("argument `fd` is {fd}, which is a stream of the child")));
    }
    #[cfg(unix)]
    if owned.numbers().any(|number| number == fd) {
        return Err(Failure::invalid(format!("argument `fd` is {fd}, which the command owns already")));
    }
    #[cfg(unix)]
    // SAFETY: it is open, and see above.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    #[cfg(windows)]
    // SAFETY: see above.
    let file = File::from(unsafe { OwnedHandle::from_raw_handle(fd) });
    *owned = std::mem::take(owned).with(file);
    Ok(())
}

/// Returns the number of a descriptor that stays ours.
#[cfg(unix)]
pub(crate) fn fd_of(file: &impl AsRawFd) -> minder_fd {
    file.as_raw_fd()
}

#[cfg(windows)]
pub(crate) fn fd_of(file: &impl AsRawHandle) -> minder_fd {
    file.as_raw_handle()
}
