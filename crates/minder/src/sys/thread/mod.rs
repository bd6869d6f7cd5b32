//! Threads of the library: the kernel delivers no signal of the host to them.

mod id;
mod stack;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub(crate) use self::id::here;
#[cfg(unix)]
pub(crate) use self::unix::{start_small, without_signals};
#[cfg(windows)]
pub(crate) use self::windows::{start_small, without_signals};
