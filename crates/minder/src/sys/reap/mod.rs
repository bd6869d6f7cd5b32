//! Hearing that a process ended, and taking its status.
//!
//! A status is *peeked* first and taken by *reap* later, after the caller was told: until then the
//! pid stays the dead child's own and cannot name a stranger.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::Process;
#[cfg(windows)]
pub(crate) use self::windows::Process;
