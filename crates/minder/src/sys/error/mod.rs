//! Classes of operating system errors that the layers above act on.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{is_exhausted, is_no_such_process};
#[cfg(windows)]
pub(crate) use self::windows::{NoSuchProcess, is_exhausted, is_no_such_process};

use std::io;

/// Returns whether a backend takes no more registrations: there is no memory, or the user has
/// reached its limit (`fs.epoll.max_user_watches`, epoll_ctl(2)).
pub(crate) fn is_registration_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull || is_exhausted(error)
}
