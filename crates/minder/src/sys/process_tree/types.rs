//! The signals to a process tree.

/// A signal to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeSignal {
    /// This signal. The processes are stopped before and continued afterwards, so that each is found and
    /// receives it. A signal that stops is sent alone.
    Signal(i32),
    /// End, now.
    Kill,
    /// Stop all processes.
    Stop,
    /// Continue all processes.
    Continue,
}

#[cfg(unix)]
impl TreeSignal {
    /// Returns whether it is a signal that stops a process. It is sent alone.
    pub(super) fn is_stop(self) -> bool {
        const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        matches!(self, Self::Signal(signal) if STOPS.contains(&signal))
    }
}
