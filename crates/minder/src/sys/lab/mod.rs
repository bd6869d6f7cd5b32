//! What is measured and not used: the clock of this process's CPU, and baselines as they were
//! published.

pub(crate) mod wait;
#[cfg(unix)]
mod unix;
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
mod usage;
#[cfg(windows)]
mod windows;
pub(crate) mod exit;
pub(crate) mod spawn;

#[cfg(all(unix, not(any(target_os = "netbsd", target_os = "openbsd"))))]
pub(crate) use self::unix::cpu_time;
#[cfg(unix)]
pub(crate) use self::unix::{Gate, Objects, SIZES, TICK, is_wine};
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) use self::usage::cpu_time;
#[cfg(windows)]
pub(crate) use self::windows::{Gate, Objects, SIZES, TICK, cpu_time, is_wine};
