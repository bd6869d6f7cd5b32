//! The implementation of the public poller.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::PollerBackend;
#[cfg(windows)]
pub(crate) use self::windows::PollerBackend;
