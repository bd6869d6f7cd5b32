//! The configuration of a guard, and the type of its signal source.

/// The source that the event loop of the host waits for: a descriptor on Unix.
#[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
#[cfg(unix)]
pub type SignalSource<'a> = std::os::fd::BorrowedFd<'a>;
/// The source that the event loop of the host waits for: a handle on Windows.
#[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
#[cfg(windows)]
pub type SignalSource<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// The configuration of `Guard::install`.
#[derive(Clone, Debug)]
pub(crate) struct GuardConfig {
    pub(crate) guardians: bool,
    /// `true` if a deadline of the runner is watched.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has guardians"))]
    pub(crate) watchdog: bool,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has guardians"))]
    pub(crate) faults: FaultInjection,
    /// The jobserver tokens to release when the run is killed.
    #[allow(dead_code, reason = "only guardians outlive a kill")]
    pub(crate) held_tokens: Option<std::sync::Arc<crate::sys::jobserver::HeldTokens>>,
}

/// Faults that tests inject. They are never read from the environment, so users cannot set them.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has guardians"))]
pub(crate) struct FaultInjection {
    /// The time that the inner guardian waits between its fork and its session.
    pub(crate) late: std::time::Duration,
    /// As if the kernel had no `/proc/PID/task/TID/children`.
    pub(crate) no_children_file: bool,
    /// As if the kernel had no pidfds.
    pub(crate) no_pidfd: bool,
}

/// The deadline of a process that a guardian watches: no other system has guardians.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watchdog {}

#[cfg(not(target_os = "linux"))]
impl Watchdog {
    pub(crate) fn set_deadline(self, _: Option<std::time::Duration>) {
        match self {}
    }
}
