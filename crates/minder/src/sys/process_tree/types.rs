//! What is sent to a process tree.

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
