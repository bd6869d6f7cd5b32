//! Signals to a whole tree of processes, and the question whether anybody of it is left.

#[cfg(unix)]
mod unix;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod proc;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(in crate::sys) use self::proc::{PF_EXITING, why_no_table};
#[cfg(unix)]
pub(crate) use self::unix::{CHECK_IS_CHEAP, ProcessSnapshot, SIGNAL_MAX, Tree};
#[cfg(windows)]
pub(crate) use self::windows::{CHECK_IS_CHEAP, KILLED, ProcessSnapshot, SIGNAL_MAX, Tree};

/// What to send to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeSignal {
    /// This signal, and those who are stopped go on to take it.
    Signal(i32),
    /// End, now.
    Kill,
    /// Stand still.
    Stop,
    /// Go on.
    Continue,
}
