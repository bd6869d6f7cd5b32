//! What is measured and not used: the clock of this process's CPU, and baselines as they were published.

#[cfg(unix)]
pub(crate) mod wait;
#[cfg(unix)]
mod unix;
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
mod usage;
#[cfg(windows)]
mod windows;
pub(crate) mod exit;
pub(crate) mod spawn;

#[cfg(unix)]
pub(crate) use self::unix::Objects;
#[cfg(all(unix, not(any(target_os = "netbsd", target_os = "openbsd"))))]
pub(crate) use self::unix::cpu_time;
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) use self::usage::cpu_time;
#[cfg(windows)]
pub(crate) use self::windows::{Objects, cpu_time, wait};
