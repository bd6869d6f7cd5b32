//! What is sent to a process tree.

/// What to send to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeSignal {
    /// This signal. Stopped processes are continued so that they receive it.
    Signal(i32),
    /// End, now.
    Kill,
    /// Stop all processes.
    Stop,
    /// Continue all processes.
    Continue,
}
