//! Baselines that observe the exits of many children.
//!
//! `types.rs` has the data and `watcher.rs` the contract with the loop that is measured; it is the
//! same for all mechanisms. Each file in `unix` and `windows` is one mechanism, with one line in
//! the table there.

mod types;
mod exit_channel;
mod process;
mod watcher;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(windows)]
pub(crate) use self::process::has_exited;
pub(crate) use self::process::{IDLE_COMMAND, end_all, settle, was_killed};
#[cfg(all(test, unix))]
pub(crate) use self::types::ExitMeasurement;
pub(crate) use self::types::{EXIT_TIMEOUT, KillMode, ObservedExit};
#[cfg(unix)]
pub(crate) use self::unix::{BASELINES, SIZES};
pub(crate) use self::watcher::ExitWatcher;
#[cfg(windows)]
pub(crate) use self::windows::{BASELINES, SIZES};
