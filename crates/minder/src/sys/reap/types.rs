//! What a poll of one child finds.

/// What is ready of a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildReadiness {
    pub(crate) exited: bool,
    /// Whether a read of each output does not block.
    pub(crate) outputs: [bool; 2],
}
