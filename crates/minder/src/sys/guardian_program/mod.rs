//! The program of a [`Guardian`](crate::guard::Guardian): it has the list of the children of one host, and
//! ends all of them when the host is gone.
//!
//! `unix.rs` receives the records and notices the end of the host. `target.rs` is one child on the list.
//! What belongs to the children, and how all of it is ended, depends on the system: `linux.rs` searches
//! `/proc`, `other.rs` signals the groups.

#[cfg(unix)]
mod target;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod other;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::run;
#[cfg(windows)]
pub(crate) use self::windows::run;
