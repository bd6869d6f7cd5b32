//! Hearing that a process ended, and taking its status.
//!
//! A status is *peeked* first and taken by *reap* later, after the caller was told: until then the
//! process number stays the dead child's own and cannot name a stranger.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod pidfd;
#[cfg(unix)]
mod exit_poller;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::pidfd::available as pidfd_available;
#[cfg(windows)]
pub(crate) use self::windows::{Process, is_nobody, open_process};
#[cfg(unix)]
pub(crate) use self::{
    exit_poller::ExitPoller,
    unix::{Process, is_nobody, open_pidfd},
};
