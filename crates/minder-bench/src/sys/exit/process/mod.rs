//! Killing, waiting for and cleaning up children, by their pids.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{IDLE_COMMAND, end_all, settle, was_killed};
#[cfg(unix)]
pub(super) use self::unix::{has_children, kill, to_pid, wait};
#[cfg(windows)]
pub(crate) use self::windows::{IDLE_COMMAND, end_all, has_exited, settle, was_killed};
#[cfg(windows)]
pub(super) use self::windows::{KILLED, kill, open};
