//! Signals to a whole process tree, and the check whether any process of it is left.

mod types;
#[cfg(unix)]
mod unix;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod proc;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(in crate::sys) use self::proc::{PF_EXITING, why_no_table};
pub(crate) use self::types::TreeSignal;
#[cfg(unix)]
pub(crate) use self::unix::{CHECK_IS_CHEAP, ProcessSnapshot, ProcessTree, SIGNAL_MAX};
#[cfg(windows)]
pub(crate) use self::windows::{CHECK_IS_CHEAP, ProcessSnapshot, ProcessTree, SIGNAL_MAX};
