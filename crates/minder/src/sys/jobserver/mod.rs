//! Make's jobserver: tokens that all participants of one build share.
//!
//! Each system supplies `Client`: `connect` to the value of `--jobserver-auth=`; `try_acquire` and
//! `release`, which never block; a source to wait for, if there is one; and `debt`, which another
//! process can return if this one is killed.

#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
pub(crate) use held::Debt;

/// What a killed process owes to its build. Never made here: this system has no guardians that
/// could give it back.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) enum Debt {}

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::Client;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::Client;
