//! What a guard is asked for, and what its host waits on.

/// What a host's own loop waits on: a descriptor here.
#[cfg(unix)]
pub type SignalSource<'a> = std::os::fd::BorrowedFd<'a>;
/// What a host's own loop waits on: a handle here.
#[cfg(windows)]
pub type SignalSource<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// How `Guard::enter` goes about it.
#[derive(Clone, Debug)]
pub(crate) struct GuardConfig {
    pub(crate) guardians: bool,
    pub(crate) faults: FaultInjection,
    /// What is to be given back when the run is killed.
    #[allow(dead_code, reason = "only guardians outlive a kill")]
    pub(crate) debt: Option<std::sync::Arc<crate::sys::jobserver::Debt>>,
}

/// Faults that tests inject. They are never read from the environment, so users cannot set them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultInjection {
    /// The time that the inner guardian waits between its fork and its session.
    pub(crate) late: std::time::Duration,
    /// As if the kernel had no `/proc/PID/task/TID/children`.
    pub(crate) no_children_file: bool,
    /// As if the kernel had no pidfds.
    pub(crate) no_pidfd: bool,
}
