//! Threads with small stacks, to which the kernel delivers no signals.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::spawn_small;
#[cfg(windows)]
pub(crate) use self::windows::{SMALL_STACK, spawn_small};
