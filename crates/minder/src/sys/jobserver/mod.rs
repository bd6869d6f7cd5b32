//! Make's jobserver: tokens that all participants of one build share.
//!
//! Each system supplies `Client`: `connect` to the value of `--jobserver-auth=`; `try_acquire` and
//! `release`, which never block; a source to wait for, if there is one; and `debt`, which another
//! process can return if this one is killed.

mod debt;
#[cfg(target_os = "linux")]
mod held;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::Client;
#[cfg(windows)]
mod windows;
pub(crate) use debt::Debt;
#[cfg(windows)]
pub(crate) use windows::Client;
