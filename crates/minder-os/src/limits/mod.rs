//! Limits of this process: its stack, its descriptors, and the niceness that it may give to children.

use std::io;

#[cfg(unix)]
mod unix;

/// Returns the maximum size of the main thread's stack in bytes (`ulimit -s`). Returns `None` if it
/// is unlimited or not known.
///
/// - Unix: the soft limit `RLIMIT_STACK` (getrlimit(2)). Arguments and environment of the process
///   are on this stack too (execve(2)).
/// - Windows: always `None`; the size is in the file of the program.
///
/// ```
/// assert!(minder_os::limits::stack_limit().is_none_or(|bytes| bytes > 0));
/// ```
#[must_use]
pub fn stack_limit() -> Option<u64> {
    #[cfg(unix)]
    return unix::stack_limit();
    #[cfg(windows)]
    None
}

/// Returns whether an error says that this process, or the whole system, has no free descriptor.
///
/// - Unix: `EMFILE` and `ENFILE` (open(2)).
/// - Windows: always `false`; the number of handles is limited by memory only.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    #[cfg(unix)]
    return unix::is_out_of_descriptors(error);
    #[cfg(windows)]
    {
        let _ = error;
        false
    }
}

/// Returns the increment that gives a child exactly this niceness, between -20 and 19, if its
/// niceness is set relative to the calling thread's. Returns 0 if the niceness is lower than that
/// of this process and the process may not set it.
///
/// - Linux: a short-lived thread tries to set it, since privileges, namespaces and `RLIMIT_NICE`
///   decide together.
/// - Windows: returns `niceness`, which stands for a priority class.
#[must_use]
pub fn nice_increment(niceness: i32) -> i32 {
    #[cfg(unix)]
    return unix::nice_increment(niceness);
    #[cfg(windows)]
    niceness
}
