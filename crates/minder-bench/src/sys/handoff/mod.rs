//! `Handoff`: blocks one thread until another releases it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::Handoff;
#[cfg(windows)]
pub(crate) use self::windows::Handoff;
