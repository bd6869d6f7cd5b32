//! Endpoints that report the exit of a process and take its status.
//!
//! A status is *peeked* first and *reaped* later, after the caller has received it. Until then the
//! pid belongs to the exited child and cannot name another process.

#[cfg(unix)]
mod orphans;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(windows)]
pub(crate) use self::windows::{ExitWatch, Process, reap_orphans};
#[cfg(unix)]
pub(crate) use self::{
    orphans::reap_orphans,
    unix::{ExitWatch, Process},
};
