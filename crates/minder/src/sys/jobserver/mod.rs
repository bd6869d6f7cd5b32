//! Make's jobserver: tokens that all who take part in one build share.
//!
//! Each system supplies `Client`: `connect` to what `--jobserver-auth=` names, `try_acquire` and `release` that never
//! block, and whether there is something that can be waited for.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::Client;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::Client;
