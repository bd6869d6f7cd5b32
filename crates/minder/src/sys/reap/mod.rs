//! Endpoints that report the exit of a process and take its status.
//!
//! A status is *peeked* first and *reaped* later, after the caller has received it. Until then the
//! pid belongs to the exited child and cannot name another process.

mod types;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod child_poll;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::child_poll::{can_poll_children, poll_child};
pub(crate) use self::types::ChildReadiness;
#[cfg(unix)]
pub(crate) use self::unix::{ExitWatch, Process};
#[cfg(windows)]
pub(crate) use self::windows::{ExitWatch, Process, can_poll_children, poll_child};
