//! Signals to a whole process tree, and the check whether any process of it is left.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod proc;
mod thread_times;
mod types;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod search;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod no_table;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use self::no_table::TreeTable;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(in crate::sys) use self::proc::{
    Entry as ProcEntry, PF_EXITING, each as each_process, each_newer as each_newer_process, is_forking,
    newest_pid, signal as signal_process, why_no_table,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::search::TreeTable;
pub(crate) use self::thread_times::main_thread_times;
pub(crate) use self::types::TreeSignal;
#[cfg(unix)]
pub(crate) use self::unix::{CHECK_IS_CHEAP, ProcessSnapshot, ProcessTree, SIGNAL_MAX};
#[cfg(windows)]
pub(crate) use self::windows::{CHECK_IS_CHEAP, ProcessSnapshot, ProcessTree, SIGNAL_MAX};
