//! Asking the operating system for a faster tick.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::TickRequest;
#[cfg(windows)]
pub(crate) use self::windows::{TickRequest, query};
