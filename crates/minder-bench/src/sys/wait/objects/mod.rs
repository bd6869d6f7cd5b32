//! Objects that a program can signal, wait for and reset.

#[cfg(windows)]
mod event;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod eventfd;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod pipe;

#[cfg(windows)]
pub(crate) use self::event::{Objects, SIZES};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::eventfd::{Objects, SIZES};
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(crate) use self::pipe::{Objects, SIZES};
