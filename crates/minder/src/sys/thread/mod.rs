//! What a thread of ours must be to a host: a place where none of its signals arrive.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::without_signals;
#[cfg(windows)]
pub(crate) use self::windows::without_signals;
