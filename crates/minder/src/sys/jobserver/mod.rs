//! Make's jobserver: tokens that all participants of one build share.
//!
//! Each system supplies `Client`: `connect` to the value of `--jobserver-auth=`; `try_acquire` and
//! `release`, which never block; a source to wait for, if there is one; and
//! `held_tokens`, which another process can release if this one is killed.

#[cfg(target_os = "linux")]
mod token_record;
mod held_tokens;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub(crate) use held_tokens::HeldTokens;
#[cfg(unix)]
pub(crate) use unix::Client;
#[cfg(windows)]
pub(crate) use windows::Client;
